//! An executor that does not respond to the request to end a run delays no other job.

use tickwright_tests::sim::replacing;

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
