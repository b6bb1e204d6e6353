//! Alerts, from the incident until they are pruned.

use std::time::Duration;

use engine::policy::Repeats;
use engine::{AppId, JobId, JobSpec, Retention, RunId, Store as _, TroubleKind};

use super::Fresh;
use super::bench::{Bench, HOUR, SECOND, failed};
use crate::{AlertCount, AlertFilter, AlertRow, AlertState, Delivery, Page};

const MINUTE: Duration = Duration::from_secs(60);

impl Bench {
    /// Creates a job with alerts enabled.
    async fn watched(&self) -> JobId {
        self.create(|spec| spec.alert = true).await
    }

    /// Triggers a run of the job that fails this long after the bench was made.
    async fn fail_after(&self, job: JobId, after: Duration) -> RunId {
        let run = self.trigger(job, i64::try_from(after.as_millis()).unwrap()).await;
        self.claim_waiting_at(self.now).await;
        self.end_at(self.now + after, run, failed()).await;
        run
    }

    async fn alerts(&self, filter: &AlertFilter) -> Vec<AlertRow> {
        self.store.alert_page(filter, Page::first(100)).await.unwrap().rows
    }
}

fn told(channel: &str, trouble: Option<&str>, bench: &Bench) -> Delivery {
    Delivery {
        channel: channel.into(),
        to: "hooks.example".into(),
        at: bench.now,
        trouble: trouble.map(Into::into),
    }
}

pub async fn an_alert_is_seen_from_its_beginning_until_it_is_old(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (job, all) = (bench.watched().await, AlertFilter::default());
    let run = bench.fail_after(job, SECOND).await;
    let [alert] = &bench.alerts(&all).await[..] else { panic!("one alert") };
    assert_eq!(
        (alert.job, alert.app, alert.run, alert.kind),
        (job, bench.app, Some(run), TroubleKind::Failed)
    );
    assert_eq!((alert.message.as_str(), alert.count, alert.tries), ("no", 1, 0));
    assert_eq!((alert.at, alert.last_at), (bench.now + SECOND, bench.now + SECOND));
    assert_eq!((alert.state, &alert.deliveries[..]), (AlertState::Waiting, &[][..]));

    let later = bench.now + HOUR;
    let taken = bench.store.take_alerts(later, SECOND, 10).await.unwrap().pop().unwrap();
    assert_eq!(bench.store.alert_to_tell(taken.id).await.unwrap().as_ref(), Some(alert));
    let deliveries = [told("mail", None, &bench), told("slack", Some("it answered 500"), &bench)];
    bench.store.note_told(taken.id, 1, &deliveries).await.unwrap();
    let [tried] = &bench.alerts(&all).await[..] else { panic!("one alert") };
    assert_eq!((tried.state, tried.tries, &tried.deliveries[..]), (AlertState::Waiting, 1, &deliveries[..]));

    // The rest is delivered, and the alert is no longer pending.
    let deliveries = [told("mail", None, &bench), told("slack", None, &bench)];
    bench.store.note_told(taken.id, 2, &deliveries).await.unwrap();
    let old = |before| Retention { runs_before: before, runs_max: None, history_before: bench.now - HOUR };
    bench.store.prune(&old(later), 10).await.unwrap();
    assert_eq!(bench.alerts(&all).await.len(), 1, "it is still to be told");
    bench.store.forget_alerts(&[taken.id]).await.unwrap();
    let [done] = &bench.alerts(&all).await[..] else { panic!("one alert") };
    assert_eq!((done.state, done.tries, &done.deliveries[..]), (AlertState::Delivered, 2, &deliveries[..]));
    assert_eq!(bench.store.alert_to_tell(taken.id).await, Ok(None));
    bench.store.note_told(taken.id, 3, &[]).await.unwrap();
    assert_eq!(bench.alerts(&all).await[0].tries, 2, "what is settled stays");

    bench.store.prune(&old(bench.now), 10).await.unwrap();
    assert_eq!(bench.alerts(&all).await.len(), 1);
    bench.store.prune(&old(later), 10).await.unwrap();
    assert_eq!(bench.alerts(&all).await, []);
}

pub async fn what_goes_on_joins_the_alert_and_is_told_less_and_less_often(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let (job, other) = (bench.watched().await, bench.watched().await);
    for seconds in (0..600).step_by(20) {
        bench.fail_after(job, SECOND * seconds).await;
    }
    bench.fail_after(other, SECOND * 30).await;
    let of = |job| AlertFilter { job: Some(job), ..AlertFilter::default() };
    let mut alerts = bench.alerts(&of(job)).await;
    alerts.reverse();
    // Windows of one, two and four minutes; the fourth is still open.
    let seen: Vec<(u64, u64, u64)> = alerts
        .iter()
        .map(|alert| (alert.at.duration_since(bench.now).as_secs(), alert.count, alert.earlier))
        .collect();
    assert_eq!(seen, [(0, 3, 0), (60, 6, 2), (180, 12, 5), (420, 9, 11)]);
    assert_eq!(alerts[3].last_at, bench.now + SECOND * 580);
    assert_eq!(bench.alerts(&of(other)).await.len(), 1, "another job's are its own");
    let taken = bench.store.take_alerts(bench.now + HOUR * 9, SECOND, 100).await.unwrap();
    assert_eq!(taken.len(), 5, "those that joined are not told");

    // After a pause it is notified immediately again.
    let begun = 580 + Repeats::USUAL.window(3).as_secs() + 1;
    bench.fail_after(job, SECOND * u32::try_from(begun).unwrap()).await;
    bench.fail_after(job, SECOND * u32::try_from(begun).unwrap() + MINUTE * 2).await;
    let alerts = bench.alerts(&of(job)).await;
    assert_eq!((alerts.len(), alerts[0].count, alerts[0].earlier, alerts[1].earlier), (6, 1, 0, 0));
}

pub async fn alerts_are_found_by_app_job_kind_state_and_time(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let app = bench.store.ensure_app("other").await.unwrap();
    let spec = JobSpec { alert: true, ..JobSpec::new(app, "theirs", cron::Schedule::Never, "demo") };
    let theirs = bench.store.create_job(&spec).await.unwrap();
    let jobs = [bench.watched().await, bench.watched().await, theirs];
    for (job, minute) in jobs.into_iter().zip(0..) {
        bench.fail_after(job, MINUTE * minute).await;
    }
    bench.fail_after(jobs[0], MINUTE * 3).await;

    let all = AlertFilter::default();
    let ids = async |filter: AlertFilter| -> Vec<JobId> {
        bench.alerts(&filter).await.iter().map(|alert| alert.job).collect()
    };
    assert_eq!(ids(all.clone()).await, [jobs[0], theirs, jobs[1], jobs[0]], "the newest first");
    assert_eq!(ids(AlertFilter { apps: Some(vec![app]), ..all.clone() }).await, [theirs]);
    assert_eq!(ids(AlertFilter { apps: Some(vec![]), ..all.clone() }).await, []);
    assert_eq!(ids(AlertFilter { apps: Some(vec![AppId(99)]), ..all.clone() }).await, []);
    assert_eq!(ids(AlertFilter { job: Some(jobs[1]), ..all.clone() }).await, [jobs[1]]);
    let (from, until) = (Some(bench.now + MINUTE), Some(bench.now + MINUTE * 2));
    assert_eq!(ids(AlertFilter { from, until, ..all.clone() }).await, [jobs[1]]);
    let first = bench.store.alert_page(&all, Page::first(3)).await.unwrap();
    let rest = bench.store.alert_page(&all, Page::After { after: first.next, limit: 3 }).await.unwrap();
    assert_eq!((first.rows.len(), rest.rows.len(), rest.next), (3, 1, None));

    // One of each state.
    let taken = bench.store.take_alerts(bench.now + HOUR, SECOND, 10).await.unwrap();
    let outcomes = [&[told("mail", None, &bench)][..], &[], &[told("mail", Some("no such host"), &bench)]];
    for (alert, outcome) in taken.iter().zip(outcomes) {
        bench.store.note_told(alert.id, 1, outcome).await.unwrap();
        bench.store.forget_alerts(&[alert.id]).await.unwrap();
    }
    let state = |state| AlertFilter { state: Some(state), ..all.clone() };
    assert_eq!(ids(state(AlertState::Delivered)).await, [jobs[0]]);
    assert_eq!(ids(state(AlertState::Nobody)).await, [jobs[1]]);
    assert_eq!(ids(state(AlertState::GivenUp)).await, [theirs]);
    assert_eq!(ids(state(AlertState::Waiting)).await, [jobs[0]]);
    let count = async |filter| bench.store.alert_count(&filter).await.unwrap();
    assert_eq!(count(all.clone()).await, AlertCount { all: 4, undelivered: 2 });
    assert_eq!(
        count(AlertFilter { apps: Some(vec![app]), ..all.clone() }).await,
        AlertCount { all: 1, undelivered: 1 }
    );
    assert_eq!(
        count(AlertFilter { from: Some(bench.now + HOUR), ..all.clone() }).await,
        AlertCount::default()
    );
    let kind = |kind| AlertFilter { kind: Some(kind), ..all.clone() };
    assert_eq!(ids(kind(TroubleKind::Late)).await, []);
    assert_eq!(ids(kind(TroubleKind::Failed)).await.len(), 4);
}
