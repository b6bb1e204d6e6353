//! Reading, pruning, adopting.

use engine::{JobId, JobRange, Retention, RunId, RunState, Slots, Store as _};
use timer::Timestamp;

use super::Fresh;
use super::bench::{Bench, HOUR, Simple, failed, lost, ok};
use crate::RunLog;

pub async fn jobs_and_runs_are_read_page_by_page(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let jobs = bench.start_many(bench.hourly(), 7, bench.now + HOUR).await;
    let mut read: Vec<JobId> = Vec::new();
    loop {
        let page = bench.store.jobs(read.last().copied(), 3).await.unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 3);
        read.extend(page.iter().map(|job| job.id));
    }
    assert_eq!(read, jobs);

    for _ in 0..5 {
        bench.claim_at(bench.next_of(jobs[0]).await.unwrap()).await;
    }
    let all = bench.records(jobs[0]).await;
    assert_eq!(all.len(), 5);
    let page = bench.store.runs(jobs[0], Some(all[1].id), 2).await.unwrap();
    assert_eq!(page, all[2..4]);
    assert!(all.iter().all(|record| record.job == jobs[0] && record.state == RunState::Claimed));

    bench.end(all[0].id, ok()).await;
    let over = bench.records(jobs[0]).await.remove(0);
    assert_eq!(over.state, RunState::Succeeded);
    let cut = all[0].scheduled_at.as_millis().div_euclid(1_000) * 1_000;
    assert_eq!(over.scheduled_at, Timestamp::from_millis(cut), "the log remembers whole seconds");
}

pub async fn what_is_old_is_pruned_and_what_is_open_stays(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(bench.run(job).await);
    }
    bench.end(runs[0].id, ok()).await;
    bench.end(runs[1].id, lost()).await;
    bench.end(runs[3].id, ok()).await;
    let by_hand = bench.trigger(job, 1).await;
    let old = bench.another("old").await;
    bench.another("old").await;

    let nothing =
        Retention { runs_before: bench.now - HOUR, runs_max: None, history_before: bench.now - HOUR };
    assert_eq!(bench.store.prune(&nothing, 1_000).await, Ok(0));

    // The first two runs are finished and old; the third is old and open; the fourth is finished and not old.
    let runs_before =
        Retention { runs_before: runs[3].scheduled_at, runs_max: None, history_before: bench.now - HOUR };
    assert_eq!(bench.store.prune(&runs_before, 1).await, Ok(1));
    assert_eq!(bench.store.prune(&runs_before, 1_000).await, Ok(1));
    let left: Vec<_> = bench.records(job).await.iter().map(|record| record.id).collect();
    assert_eq!(left, [runs[2].id, runs[3].id, by_hand]);
    assert_eq!(bench.listed_as_failed().await, 0);

    // The history entry of the lost run with its row in `tw_lost`, and the dead incarnation without open runs; the
    // key of a trigger when its run is finished.
    let all = Retention {
        runs_before: bench.now - HOUR,
        runs_max: None,
        history_before: bench.now + HOUR * 10_000,
    };
    assert_eq!(bench.store.prune(&all, 1_000).await, Ok(3));
    assert!(bench.dispositions(job).await.is_empty());
    assert_eq!(bench.trigger(job, 1).await, by_hand);
    bench.end(by_hand, ok()).await;
    assert_eq!(bench.store.prune(&all, 1_000).await, Ok(1));
    assert_ne!(bench.trigger(job, 1).await, by_hand);
    assert!(bench.store.fence(&old.node).await.unwrap());
    assert!(bench.store.heartbeat(&bench.node, HOUR, super::nodes::FIRST).await.is_ok(), "the living stay");
}

pub async fn runs_beyond_so_many_are_pruned_and_what_is_open_stays(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(bench.run(job).await);
    }
    for run in &runs[1..] {
        bench.end(run.id, failed()).await;
    }
    let log = RunLog { text: "line".into(), complete: true };
    bench.store.keep_run_logs(&[(runs[1].id, log.clone()), (runs[5].id, log)]).await.unwrap();
    let keep = |most| Retention {
        runs_before: bench.now - HOUR,
        runs_max: Some(most),
        history_before: bench.now - HOUR,
    };
    let left = async || -> Vec<RunId> { bench.records(job).await.iter().map(|record| record.id).collect() };
    assert_eq!(bench.store.prune(&keep(6), 1_000).await, Ok(0));
    assert_eq!(bench.store.prune(&keep(1_000_000), 1_000).await, Ok(0));
    assert_eq!(bench.store.prune(&keep(3), 1).await, Ok(1), "a little at a time");
    assert_eq!(bench.store.prune(&keep(3), 1_000).await, Ok(1));
    assert_eq!(left().await, [runs[0].id, runs[3].id, runs[4].id, runs[5].id], "the first is open");
    assert_eq!(bench.listed_as_failed().await, 3);
    assert_eq!(bench.store.kept_run_log(runs[1].id).await, Ok(None));
    assert!(bench.store.kept_run_log(runs[5].id).await.unwrap().is_some());
    assert_eq!(bench.store.prune(&keep(3), 1_000).await, Ok(0));
}

pub async fn nothing_to_adopt_changes_nothing(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    bench.create(|_| {}).await;
    let planner = Simple { now: bench.now };
    assert_eq!(bench.store.has_changed_jobs(JobRange::ALL).await, Ok(false));
    assert_eq!(bench.store.adopt(JobRange::ALL, 1_000, &planner).await.map(|adopted| adopted.changed), Ok(0));
    let at = bench.next_of(job).await.unwrap();
    bench.store.claim_due(&bench.node, at, Slots::ALL, 1_000, &Simple { now: at }).await.unwrap();
    assert_eq!(bench.store.adopt(JobRange::ALL, 1_000, &planner).await.map(|adopted| adopted.changed), Ok(0));
}
