//! Circuit breaker: stops calls to an address that does not answer, and probes it at intervals.
//!
//! A few failures in a row open the breaker; while it is open no call is sent. After a pause one call goes through
//! as a probe and the others wait for its result: an answer closes the breaker, a failure makes the pause longer. An
//! answer to any other call also closes it, and so does a registration.

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// How a breaker treats the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// All calls pass.
    Closed,
    /// No call passes.
    Open,
    /// One call passes as a probe, or the answer to the probe is pending.
    Probing,
}

/// The circuit breaker of one address, shared by all calls to it.
#[derive(Debug, Default)]
pub struct Circuit {
    breaker: Mutex<Breaker>,
    /// Wakes calls that wait for the result of a probe.
    judged: Notify,
}

/// Error: the breaker lets no call through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shut;

impl Circuit {
    /// Makes a call if the breaker admits it before `by`, and records the result in the breaker. A call that meets a
    /// probe waits for its result. `is_silent` returns whether an error counts as a failure of the address.
    pub async fn call<T, E>(
        &self,
        by: Instant,
        call: impl Future<Output = Result<T, E>>,
        is_silent: impl FnOnce(&E) -> bool,
    ) -> Result<Result<T, E>, Shut> {
        let passage = self.pass(by).await?;
        let mut pass = Pass { circuit: self, passage, is_judged: false };
        let result = call.await;
        match &result {
            Ok(_) => pass.answered(),
            Err(error) if is_silent(error) => pass.silent(),
            Err(_) => {}
        }
        Ok(result)
    }

    async fn pass(&self, by: Instant) -> Result<Passage, Shut> {
        loop {
            // Subscribe before checking, so that a result in between is not missed.
            let mut judged = pin!(self.judged.notified());
            judged.as_mut().enable();
            let admitted = self.breaker().admit(Instant::now());
            match admitted {
                Ok(passage) => return Ok(passage),
                Err(Held::Paused(_)) => return Err(Shut),
                Err(Held::Probed) => timeout_at(by, judged).await.map_err(|_| Shut)?,
            }
        }
    }

    /// Closes the breaker because the executor answered another call or registered.
    pub fn close(&self) {
        self.breaker().succeed();
        self.judged.notify_waiters();
    }

    /// Returns how the breaker treats the next call.
    pub fn state(&self) -> BreakerState {
        self.breaker().state(Instant::now())
    }

    // The state is consistent after every statement, so a poisoned lock can still be used.
    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call admitted by the breaker. Dropped without a result, it counts neither as success nor as failure.
struct Pass<'a> {
    circuit: &'a Circuit,
    passage: Passage,
    is_judged: bool,
}

impl Pass<'_> {
    fn answered(&mut self) {
        self.is_judged = true;
        self.circuit.breaker().succeed();
    }

    fn silent(&mut self) {
        self.is_judged = true;
        self.circuit.breaker().fail(self.passage, Instant::now());
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if !self.is_judged {
            self.circuit.breaker().give_back(self.passage);
        }
        if self.passage == Passage::Probe {
            self.circuit.judged.notify_waiters();
        }
    }
}

/// State of one address's breaker. Pure: the caller passes the time.
#[derive(Debug, Default)]
struct Breaker {
    /// Failures in a row.
    failures: u32,
    /// End of the pause in which no call passes; set once there were enough failures.
    open_until: Option<Instant>,
    is_probing: bool,
}

/// How a call passes the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passage {
    Free,
    /// The one call that tests the address; its holder must record the result.
    Probe,
}

/// Why a call does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// The breaker is open for this long.
    Paused(Duration),
    /// Another call is the probe.
    Probed,
}

impl Breaker {
    /// Decides whether a call passes.
    fn admit(&mut self, now: Instant) -> Result<Passage, Held> {
        match self.open_until {
            None => Ok(Passage::Free),
            Some(until) if now < until => Err(Held::Paused(until - now)),
            Some(_) if self.is_probing => Err(Held::Probed),
            Some(_) => {
                self.is_probing = true;
                Ok(Passage::Probe)
            }
        }
    }

    /// Records an answer.
    fn succeed(&mut self) {
        *self = Breaker::default();
    }

    /// Records a missing answer. Calls that were sent before the breaker opened do not extend the pause.
    fn fail(&mut self, passage: Passage, now: Instant) {
        if passage == Passage::Free && self.open_until.is_some() {
            return;
        }
        self.is_probing = false;
        self.failures = self.failures.saturating_add(1);
        if let Some(beyond) = self.failures.checked_sub(FAILURES_MAX) {
            let pause = PAUSE_MIN * 2_u32.saturating_pow(beyond.min(PAUSE_DOUBLINGS_MAX));
            self.open_until = Some(now + pause);
        }
    }

    /// The probe ended without a result; another call may probe.
    fn give_back(&mut self, passage: Passage) {
        if passage == Passage::Probe {
            self.is_probing = false;
        }
    }

    fn state(&self, now: Instant) -> BreakerState {
        match self.open_until {
            None => BreakerState::Closed,
            Some(until) if now < until => BreakerState::Open,
            Some(_) => BreakerState::Probing,
        }
    }
}

/// One lost packet is not an outage; five failed calls in a row are.
const FAILURES_MAX: u32 = 5;
/// A restart takes about a second; the first probe should come soon after it.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// The longest pause is 16 times the shortest, 8 s: probing a dead address is cheap, a late recovery is not.
const PAUSE_DOUBLINGS_MAX: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_failures_in_a_row_only() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..10 {
            fail(&mut breaker, FAILURES_MAX - 1, now);
            breaker.succeed();
        }
        assert_eq!(breaker.admit(now), Ok(Passage::Free));
        fail(&mut breaker, FAILURES_MAX, now);
        assert_eq!(breaker.admit(now), Err(Held::Paused(PAUSE_MIN)));
        assert_eq!(breaker.state(now), BreakerState::Open);
    }

    #[test]
    fn one_probe_at_a_time_decides() {
        let (mut breaker, opened) = (Breaker::default(), Instant::now());
        fail(&mut breaker, FAILURES_MAX, opened);
        let later = opened + PAUSE_MIN;
        assert_eq!(breaker.admit(later), Ok(Passage::Probe));
        assert_eq!(breaker.state(later), BreakerState::Probing);
        assert_eq!(breaker.admit(later), Err(Held::Probed));
        breaker.give_back(Passage::Probe);
        assert_eq!(breaker.admit(later), Ok(Passage::Probe));
        breaker.fail(Passage::Probe, later);
        assert_eq!(breaker.admit(later), Err(Held::Paused(PAUSE_MIN * 2)));
        assert_eq!(breaker.admit(later + PAUSE_MIN * 2), Ok(Passage::Probe));
        breaker.succeed();
        assert_eq!(breaker.admit(later), Ok(Passage::Free));
    }

    #[test]
    fn pauses_grow_to_a_bound_and_old_failures_do_not_add_to_them() {
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        fail(&mut breaker, 1_000, now);
        assert_eq!(breaker.admit(now), Err(Held::Paused(PAUSE_MIN)));
        for _ in 0..100 {
            now += PAUSE_MIN * 16;
            assert_eq!(breaker.admit(now), Ok(Passage::Probe));
            breaker.fail(Passage::Probe, now);
        }
        assert_eq!(breaker.admit(now), Err(Held::Paused(PAUSE_MIN * 16)));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_meet_a_probe_wait_for_its_verdict() {
        let circuit = opened();
        tokio::time::sleep(PAUSE_MIN).await;
        let herd = (0..60).map(|_| call(&circuit, Ok(())));
        let answers = futures_util::future::join_all(herd).await;
        assert_eq!(answers, vec![Ok(Ok(())); 60]);
        assert_eq!(circuit.state(), BreakerState::Closed);

        let circuit = opened();
        tokio::time::sleep(PAUSE_MIN).await;
        let herd = (0..3).map(|_| call(&circuit, Err(())));
        assert_eq!(futures_util::future::join_all(herd).await, [Ok(Err(())), Err(Shut), Err(Shut)]);
        assert_eq!(circuit.state(), BreakerState::Open);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_for_a_probe_than_it_has_time() {
        let circuit = opened();
        tokio::time::sleep(PAUSE_MIN).await;
        let by = Instant::now() + PAUSE_MIN;
        let hangs = circuit.call(by, std::future::pending::<Result<(), ()>>(), |_| true);
        let waits = circuit.call(by, async { Ok::<(), ()>(()) }, |_| true);
        tokio::select! {
            biased;
            _ = hangs => unreachable!("it never answers"),
            waited = waits => assert_eq!(waited, Err(Shut)),
        }
        assert_eq!(Instant::now(), by);
    }

    #[tokio::test(start_paused = true)]
    async fn another_answer_closes_it() {
        let circuit = opened();
        assert_eq!(call(&circuit, Ok(())).await, Err(Shut));
        circuit.close();
        assert_eq!(call(&circuit, Ok(())).await, Ok(Ok(())));
    }

    /// A circuit opened by failed calls.
    fn opened() -> Circuit {
        let circuit = Circuit::default();
        fail(&mut circuit.breaker(), FAILURES_MAX, Instant::now());
        circuit
    }

    async fn call(circuit: &Circuit, answer: Result<(), ()>) -> Result<Result<(), ()>, Shut> {
        let takes = async {
            tokio::time::sleep(PAUSE_MIN).await;
            answer
        };
        circuit.call(Instant::now() + PAUSE_MIN * 4, takes, |()| true).await
    }

    fn fail(breaker: &mut Breaker, times: u32, now: Instant) {
        for _ in 0..times {
            breaker.fail(Passage::Free, now);
        }
    }
}
