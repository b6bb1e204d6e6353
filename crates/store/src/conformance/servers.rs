//! Several servers of one database, all of which accept writes: a lock on one does not exclude transactions on the others.

use std::sync::Arc;
use std::time::Duration;

use cron::Schedule;
use engine::policy::Overlap;
use engine::{JobId, JobSpec, Joined, NewJob, Run, Slots, Store as _, Trigger};
use futures_util::future::join_all;

use super::bench::{LEASE, Simple};
use crate::Database;

/// One node for each store.
pub async fn a_job_that_may_not_overlap_runs_once(stores: &[Arc<Database>]) {
    let mut nodes = Vec::new();
    for (number, store) in stores.iter().enumerate() {
        nodes.push(store.join(&format!("node-{number}"), LEASE).await.unwrap());
    }
    let app = stores[0].ensure_app("one-at-a-time").await.unwrap();
    let spec =
        JobSpec { overlap: Overlap::Wait, ..JobSpec::new(app, "one at a time", Schedule::Never, "work") };
    for round in 0..ROUNDS {
        let planner = Simple { now: nodes[0].now };
        let job = stores[0].add_job(&NewJob::stopped(spec.clone()), &planner).await.unwrap();
        for (number, store) in stores.iter().enumerate() {
            until_there(store, job).await;
            for key in 0..RUNS_EACH {
                let key = 1 + round * 1_000 + number as i64 * 100 + key;
                store
                    .trigger(job, &Trigger { key, at: None, param: None, address: None, by: None })
                    .await
                    .unwrap();
            }
        }
        for store in stores {
            until_waiting(store, job, RUNS_EACH as u64 * stores.len() as u64).await;
        }
        let claims = stores.iter().zip(&nodes).map(|(store, joined)| claim(store, joined));
        let claimed: Vec<Run> = join_all(claims).await.into_iter().flatten().collect();
        let at_once: Vec<&Run> = claimed.iter().filter(|run| run.job == job).collect();
        assert_eq!(at_once.len(), 1, "round {round}: {at_once:?}");
    }
}

async fn claim(store: &Database, joined: &Joined) -> Vec<Run> {
    let now = joined.now + Duration::from_secs(3_600);
    let slots = Slots { mask: u64::MAX, others_before: now };
    let claim = store.claim_waiting(&joined.node, now, slots, 100, &Simple { now }).await.unwrap();
    claim.orders.into_iter().map(|order| order.run).collect()
}

/// A commit reaches the other servers a little later.
async fn until_there(store: &Database, job: JobId) {
    while store.job(job).await.unwrap().is_none() {
        tokio::time::sleep(LOOK).await;
    }
}

async fn until_waiting(store: &Database, job: JobId, count: u64) {
    while store.job(job).await.unwrap().unwrap().waiting < count {
        tokio::time::sleep(LOOK).await;
    }
}

const ROUNDS: i64 = 20;
const RUNS_EACH: i64 = 2;
const LOOK: Duration = Duration::from_millis(5);
