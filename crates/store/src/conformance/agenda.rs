//! The agenda: what it shows of each kind of work.

use engine::{Agenda, Control, Move, Store as _, To};

use super::Fresh;
use super::bench::{Bench, HOUR, SECOND, failed};
use crate::{Beat, Registration, Registry as _};

/// The agenda without the time and the nodes.
async fn work(bench: &Bench) -> Agenda {
    let agenda = bench.store.agenda(false).await.unwrap();
    assert!(agenda.now >= bench.now);
    assert_eq!(agenda.nodes.first().map(|peer| &peer.node), Some(&bench.node));
    Agenda { now: Default::default(), nodes: vec![], ..agenda }
}

pub async fn the_agenda_has_the_earliest_time_of_each_kind_of_work(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let empty = work(&bench).await;
    assert_eq!(empty, Agenda { registry: empty.registry, ..Agenda::default() });
    assert!(!empty.has_open_runs());

    // A stopped job has no claim time; of two started ones the earlier counts.
    bench.create(|_| {}).await;
    let later = bench.start(&bench.hourly()).await;
    let mut spec = bench.hourly();
    spec.alert = true;
    let job = bench.start(&spec).await;
    let next = bench.next_of(job).await.unwrap();
    assert_eq!(work(&bench).await, Agenda { claim_at: Some(next), ..empty.clone() });
    bench.control(later, Control::Stop).await;

    let run = bench.trigger(job, 1).await;
    let waiting = work(&bench).await;
    assert_eq!(waiting, Agenda { claim_at: Some(next), waiting_at: Some(bench.now), ..empty.clone() });
    assert!(waiting.has_open_runs() && waiting.has_claims(bench.now));

    let claimed = bench.claim_waiting_at(bench.now).await.orders.remove(0).run;
    let expected = Agenda { claim_at: Some(next), has_claimed: true, ..empty.clone() };
    assert_eq!(work(&bench).await, expected);
    assert!(expected.has_open_runs() && !expected.has_claims(bench.now) && expected.has_claims(next));

    let running = bench.accept(&claimed).await;
    let expected = Agenda { claim_at: Some(next), check_at: Some(running.check_at), ..empty.clone() };
    assert_eq!(work(&bench).await, expected);
    let soon = bench.now + SECOND;
    let to = To::Running { address: None, check_at: soon, doubt_since: None };
    let moved = Move { run, version: running.version, to, trouble: None };
    bench.store.move_runs(&[moved]).await.unwrap();
    assert_eq!(work(&bench).await, Agenda { check_at: Some(soon), ..expected });

    // The failure raises an alert. It is taken, and may be taken again when that has expired.
    bench.end(run, failed()).await;
    let alert = work(&bench).await;
    assert_eq!(alert, Agenda { claim_at: Some(next), alert_at: Some(bench.now), ..empty.clone() });
    bench.store.take_alerts(bench.now, HOUR, 10).await.unwrap();
    assert_eq!(work(&bench).await, Agenda { alert_at: Some(bench.now + HOUR), ..alert });

    let registration = Registration { app: "bench".into(), address: "http://10.0.0.1:9999".into() };
    bench.store.register(&[Beat { registration, token: None }], HOUR).await.unwrap();
    assert!(work(&bench).await.registry > empty.registry);
}

pub async fn the_agenda_has_runs_of_fenced_nodes(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let at = bench.next_of(job).await.unwrap();
    let running = bench.run(job).await;
    assert!(!work(&bench).await.has_abandoned);
    let stopped = bench.start(&bench.hourly()).await;
    bench.claim_at(at + HOUR).await;
    bench.control(stopped, Control::Stop).await;
    let agenda = work(&bench).await;
    assert!(agenda.has_cancelling && !agenda.has_abandoned, "{agenda:?}");

    let again = bench.another("first").await;
    assert!(work(&again).await.has_abandoned);
    for left in again.store.abandoned(false, 10).await.unwrap() {
        let outcome = engine::Outcome::Lost("its node died".into());
        again.end(left.run.id, outcome).await;
    }
    assert!(!work(&again).await.has_abandoned);
    assert!(again.store.agenda(true).await.unwrap().has_abandoned, "the run {} is still running", running.id);
}
