//! Executors that do not end a run on request: they delay no other job, and their results count.

use tickwright_tests::sim::{overdue, replacing};

#[test]
fn an_executor_that_never_answers_a_kill_delays_only_the_job_that_replaces_its_run() {
    let seen = replacing(1);
    assert_eq!(seen.missing, 0, "{seen:?}");
    assert!(seen.latest < 250, "fires of other jobs are {} ms late", seen.latest);
    // The executor ends runs by job: the node does not send the new run before the request is answered or given up.
    assert!(seen.waited.len() > 10, "runs were replaced: {seen:?}");
    assert!(seen.waited.iter().all(|waited| *waited >= GIVEN_UP), "{seen:?}");
}

/// Time after which the request is given up, in milliseconds, less the resolution of the clock.
const GIVEN_UP: i64 = 2_990;

#[test]
fn a_run_beyond_its_timeout_stays_open_if_its_executor_refuses_to_end_it() {
    let seen = overdue(1);
    assert!(seen.runs > 3, "half of the executors do not enforce timeouts: {seen:?}");
    let all = (seen.runs, seen.runs, seen.runs);
    assert_eq!((seen.open, seen.told, seen.succeeded), all, "each is told of once: {seen:?}");
}
