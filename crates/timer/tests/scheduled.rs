//! Functions marked `#[scheduled]` are found, and mistakes are explained.

use std::sync::atomic::{AtomicUsize, Ordering};

use tickwright_timer::{Scheduler, scheduled};

// Like a crate that imports this one under another name.
use tickwright_timer as timer;

static RUNS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

#[scheduled(fixed_rate = "1h")]
async fn asynchronous() {
    RUNS[0].fetch_add(1, Ordering::SeqCst);
}

#[scheduled(fixed_delay = "1h30m", name = "blocking")]
fn blocking() -> Result<(), std::io::Error> {
    RUNS[1].fetch_add(1, Ordering::SeqCst);
    Ok(())
}

#[scheduled(cron = "* * * * * ?", zone = "Asia/Shanghai", initial_delay = "1d", catch_up)]
async fn later() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    RUNS[2].fetch_add(1, Ordering::SeqCst);
    Ok(())
}

mod elsewhere {
    #[super::timer::scheduled(fixed_rate = "1h", crate = "super::timer")]
    fn renamed() {
        super::RUNS[3].fetch_add(1, super::Ordering::SeqCst);
    }
}

#[tokio::test]
async fn marked_functions_run_without_a_list() {
    let scheduler = Scheduler::new();
    let tasks = scheduler.start_scheduled();
    let names: Vec<_> = tasks.iter().map(|task| task.name()).collect();
    assert_eq!(
        names,
        ["blocking", "scheduled::asynchronous", "scheduled::elsewhere::renamed", "scheduled::later"]
    );
    for quick in &tasks[..3] {
        while quick.count() == 0 {
            tokio::task::yield_now().await;
        }
    }
    let runs = RUNS.each_ref().map(|runs| runs.load(Ordering::SeqCst));
    assert_eq!(runs, [1, 1, 0, 1]);
    assert!(tasks[3].next_at().is_some());
}
