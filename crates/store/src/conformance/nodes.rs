//! Incarnations of nodes.

use std::time::Duration;

use engine::{Control, Heartbeat, LifelineId, Pulse, RunState, Slots, Store as _, StoreError};

use super::Fresh;
use super::bench::{Bench, LEASE, Simple};

/// The first heartbeat of an incarnation.
pub const FIRST: Heartbeat = Heartbeat { number: 1, acknowledged: 0 };

pub async fn a_new_life_has_a_higher_epoch_and_ends_the_one_before(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let again = bench.another("first").await;
    assert!(again.node.epoch > bench.node.epoch);
    assert!(bench.store.fence(&bench.node).await.unwrap(), "the life before is over");
    let other = bench.another("second").await;
    let agenda = other.store.agenda(false).await.unwrap();
    let alive: Vec<_> = agenda.nodes.iter().map(|peer| &peer.node).collect();
    assert_eq!(alive, [&again.node, &other.node]);
    assert!(agenda.nodes.iter().all(|peer| peer.lease_until > agenda.now));

    // The row of an incarnation that left is deleted, and the next one still has a higher epoch.
    again.store.leave(&again.node).await.unwrap();
    let third = bench.another("first").await;
    assert!(third.node.epoch > bench.node.epoch);

    for name in ["", &"n".repeat(191), "a\0b"] {
        let refused = bench.store.join(name, LEASE).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{name:?}: {refused:?}");
    }
}

pub async fn only_a_life_whose_lease_has_ended_can_be_declared_over(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    assert!(!bench.store.fence(&bench.node).await.unwrap());
    bench.store.heartbeat(&bench.node, 2 * LEASE, FIRST).await.unwrap();
    let agenda = bench.store.agenda(false).await.unwrap();
    let extended = agenda.nodes[0].lease_until;
    assert!(bench.now + 2 * LEASE <= extended && extended <= agenda.now + 2 * LEASE, "{agenda:?}");

    let short = bench.store.join("short", Duration::ZERO).await.unwrap().node;
    assert!(bench.store.fence(&short).await.unwrap());
    assert!(bench.store.fence(&short).await.unwrap(), "it stays over");
    bench.store.leave(&bench.node).await.unwrap();
    assert!(bench.store.fence(&bench.node).await.unwrap(), "a life that left is over");
}

pub async fn a_life_that_is_over_can_neither_claim_nor_extend_its_lease(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let at = bench.next_of(job).await.unwrap();
    let waiting = bench.trigger(job, 1).await;
    let again = bench.another("first").await;

    let fenced = Err(StoreError::Fenced(bench.node.clone()));
    let planner = Simple { now: at };
    let store = &bench.store;
    assert_eq!(store.heartbeat(&bench.node, LEASE, FIRST).await, Err(StoreError::Fenced(bench.node.clone())));
    assert_eq!(store.claim_due(&bench.node, at, Slots::ALL, 10, &planner).await.map(|_| ()), fenced);
    assert_eq!(store.claim_waiting(&bench.node, at, Slots::ALL, 10, &planner).await.map(|_| ()), fenced);
    assert_eq!(bench.open(waiting).await.unwrap().state, RunState::Waiting);

    // An expired lease counts as over.
    let short = store.join("short", Duration::ZERO).await.unwrap().node;
    let refused = store.claim_due(&short, at, Slots::ALL, 10, &planner).await.map(|_| ());
    assert_eq!(refused, Err(StoreError::Fenced(short)));

    assert_eq!(again.claim_at(at).await.orders.len(), 1);
    assert_eq!(again.claim_waiting_at(at).await.orders.len(), 1);
}

pub async fn only_lives_that_depend_on_a_broken_lifeline_are_declared_over(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    bench.fire(job).await;
    let other = bench.another("second").await;
    let (store, broken) = (&bench.store, LifelineId(7));
    assert_eq!(store.fence_broken(&[broken]).await, Ok(vec![]));
    store.depend_on(&bench.node, Some(broken)).await.unwrap();
    assert_eq!(store.fence_broken(&[LifelineId(8)]).await, Ok(vec![]), "another's has broken");
    store.depend_on(&bench.node, None).await.unwrap();
    assert_eq!(store.fence_broken(&[broken]).await, Ok(vec![]), "it depends on none any more");
    store.heartbeat(&bench.node, LEASE, FIRST).await.unwrap();

    store.depend_on(&bench.node, Some(LifelineId(8))).await.unwrap();
    store.depend_on(&bench.node, Some(broken)).await.unwrap();
    assert_eq!(store.fence_broken(&[broken, LifelineId(9)]).await, Ok(vec![bench.node.clone()]));
    assert_eq!(store.fence_broken(&[broken]).await, Ok(vec![bench.node.clone()]), "whoever did it");
    let fenced = Err(StoreError::Fenced(bench.node.clone()));
    assert_eq!(store.depend_on(&bench.node, None).await, fenced);
    assert_eq!(store.heartbeat(&bench.node, LEASE, FIRST).await, Err(StoreError::Fenced(bench.node.clone())));

    // Its lease has ended with it, and no earlier.
    let agenda = other.store.agenda(false).await.unwrap();
    assert_eq!(agenda.nodes.len(), 1);
    let left = &other.store.abandoned(false, 10).await.unwrap()[0];
    assert!(left.lease_until.is_some_and(|until| bench.now <= until && until <= agenda.now));
}

pub async fn a_node_that_leaves_hands_its_runs_back(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let stopped = bench.start(&bench.hourly()).await;
    let at = bench.next_of(job).await.unwrap();
    let claimed = bench.claim_at(at).await.orders;
    assert_eq!(claimed.len(), 2);
    assert_eq!(bench.control(stopped, Control::Stop).await, 1);

    bench.store.leave(&bench.node).await.unwrap();
    let run = &bench.open_of(job).await[0];
    assert_eq!((run.state, &run.node), (RunState::Waiting, &None));
    assert!(bench.open_of(stopped).await.is_empty());
    assert_eq!(bench.cancelling(stopped).await, 0);

    let other = bench.another("second").await;
    let taken = other.claim_waiting_at(at).await.orders;
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].run.node.as_ref(), Some(&other.node));
    assert!(taken[0].run.version > claimed[0].run.version);
}

pub async fn runs_of_a_dead_life_are_found_with_its_lease(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let job = bench.start(&bench.hourly()).await;
    let running = bench.run(job).await;
    let claimed = bench.fire(job).await.remove(0).run;
    assert!(bench.store.abandoned(true, 10).await.unwrap().is_empty());

    let again = bench.another("first").await;
    let found = again.store.abandoned(false, 10).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].run, found[0].job.as_ref().map(|job| job.id)), (&claimed, Some(job)));
    assert!(found[0].lease_until.is_some_and(|until| until > bench.now));
    let found = again.store.abandoned(true, 10).await.unwrap();
    assert_eq!(found.iter().map(|found| found.run.id).collect::<Vec<_>>(), [running.id, claimed.id]);
    assert_eq!(again.store.abandoned(true, 1).await.unwrap().len(), 1);
}

pub async fn a_heartbeat_finds_that_commits_are_lost(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let beat = async |number, acknowledged| {
        let beat = Heartbeat { number, acknowledged };
        bench.store.heartbeat(&bench.node, LEASE, beat).await
    };
    assert_eq!(beat(1, 0).await, Ok(Pulse::Renewed));
    // The response to the second one was lost.
    assert_eq!(beat(3, 1).await, Ok(Pulse::Renewed));
    assert_eq!(beat(2, 1).await, Ok(Pulse::Renewed), "it arrived late, and changes nothing");
    assert_eq!(beat(4, 3).await, Ok(Pulse::Renewed));
    assert_eq!(beat(4, 3).await, Ok(Pulse::Renewed), "it was sent again over another connection");

    let lease_until = bench.store.agenda(false).await.unwrap().nodes[0].lease_until;
    assert_eq!(beat(6, 5).await, Ok(Pulse::Older(Some(lease_until))), "the fifth one was acknowledged");
    assert_eq!(bench.store.agenda(false).await.unwrap().nodes[0].lease_until, lease_until);
    // Other nodes may have fenced it meanwhile.
    let again = bench.another("first").await;
    assert_eq!(beat(6, 5).await, Ok(Pulse::Older(Some(lease_until))));
    assert_eq!(beat(5, 4).await, Err(StoreError::Fenced(bench.node.clone())));

    again.store.leave(&again.node).await.unwrap();
    assert_eq!(again.store.heartbeat(&again.node, LEASE, FIRST).await, Ok(Pulse::Older(None)));
}
