//! Databases that have lost commits.

use engine::{Incident, JobId, Kept, RunId, Store as _, Trouble, TroubleKind};

use super::Fresh;
use super::bench::{Bench, ok};

pub async fn the_runs_that_the_database_has_are_known(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let (finished, open) = (bench.run(job).await.id, bench.run(job).await.id);
    bench.end(finished, ok()).await;
    let missing = RunId(open.0 + 1);
    let kept = bench.store.kept(&[finished, open, missing]).await.unwrap();
    assert_eq!(kept.runs.into_iter().collect::<Vec<_>>(), [(finished, job), (open, job)]);
    assert_eq!(kept.open.into_iter().collect::<Vec<_>>(), [open]);
    assert_eq!(bench.store.kept(&[]).await, Ok(Kept::default()));
}

pub async fn ids_that_may_have_been_given_are_not_given_again(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    // Also before the first run: all of them may be lost.
    bench.store.skip_run_ids(RunId(5_000)).await.unwrap();
    let first = bench.trigger(job, 1).await;
    assert!(first.0 > 5_000);
    bench.store.skip_run_ids(RunId(1)).await.unwrap();
    let second = bench.trigger(job, 2).await;
    assert!(second > first, "ids never go back: {second} after {first}");
    bench.store.skip_run_ids(RunId(second.0 + 1_000)).await.unwrap();
    let third = bench.trigger(job, 3).await;
    assert!(third.0 > second.0 + 1_000);
}

pub async fn each_alert_about_lost_commits_stands_alone(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let incident = |job, run: Option<i64>, message: &str| Incident {
        job,
        run: run.map(RunId),
        trouble: Trouble::new(TroubleKind::HistoryLost, message),
    };
    // The first belongs to no job.
    let told = [incident(JobId(0), None, "a"), incident(job, Some(7), "b"), incident(job, Some(8), "c")];
    for incident in &told {
        bench.store.raise(bench.now, std::slice::from_ref(incident)).await.unwrap();
    }
    let alerts = bench.store.take_alerts(bench.now, super::bench::SECOND, 10).await.unwrap();
    let alerts =
        alerts.into_iter().map(|alert| Incident { job: alert.job, run: alert.run, trouble: alert.trouble });
    assert_eq!(alerts.collect::<Vec<_>>(), told);
}
