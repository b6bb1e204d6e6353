//! How long the machine kept a test from running.

use std::time::Duration;

use tokio::time::Instant;

/// Time within which a stopped node has exited (I23 of docs/guarantees.md).
pub const STOP_GUARANTEED: Duration = Duration::from_secs(5);

/// Awaits `work`; also returns how long this process was meanwhile not scheduled although it was ready. A process under
/// test is kept waiting by the same load.
pub async fn stalls<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let mut stalled = Duration::ZERO;
    let measure = async {
        loop {
            let slept = Instant::now();
            tokio::time::sleep(TICK).await;
            stalled += slept.elapsed().saturating_sub(2 * TICK);
        }
    };
    let done = tokio::select! {
        done = work => done,
        () = measure => unreachable!("it has no end"),
    };
    (done, stalled)
}

/// Much longer than a timer is late on an idle machine.
const TICK: Duration = Duration::from_millis(20);
