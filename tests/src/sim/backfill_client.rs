//! A user who starts a backfill of a job, pauses, continues and sometimes cancels it, through random nodes, and does not
//! always receive the response.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cron::Timestamp;
use engine::{
    BackfillChange, BackfillId, BackfillOrder, BackfillSettings, Existing, JobId, NewBackfill, OnFailure,
    StoreError, TimeRange,
};
use store::Database;

use super::client::rest;
use super::dice::Dice;
use super::evidence::BackfillSeen;
use super::executor::Executors;
use super::node::{Answer, Request, RequestQueues};
use super::plan::Mode;
use super::world::World;

/// A client with one backfill.
pub struct BackfillClient {
    world: Arc<World>,
    queues: Arc<RequestQueues>,
    job: JobId,
    over: Arc<AtomicBool>,
    dice: Dice,
}

impl BackfillClient {
    /// Number of backfills of one simulation.
    pub const COUNT: usize = 4;

    /// The client with this number; it chooses one of the jobs.
    pub fn new(
        world: Arc<World>,
        queues: Arc<RequestQueues>,
        jobs: &[JobId],
        number: usize,
        over: Arc<AtomicBool>,
    ) -> Self {
        let mut dice = Dice::new(world.plan.seed, "backfill", number);
        let job = dice.pick(jobs);
        BackfillClient { world, queues, job, over, dice }
    }

    /// Works until the simulation is over.
    pub async fn run(mut self) {
        let wait = self.dice.millis(0, 8_000);
        rest(&self.world, &self.over, wait).await;
        let new = self.request();
        let Some(id) = self.start(&new).await else { return };
        self.world.note(|| format!("backfill {id} of job {}: {new:?}", self.job));
        self.world.evidence().backfills.push(BackfillSeen { id, job: self.job, new, end: None });
        loop {
            let wait = self.dice.millis(500, 6_000);
            if rest(&self.world, &self.over, wait).await {
                break;
            }
            let change = match self.dice.number(0, 99) {
                0..=39 => BackfillChange::Pause,
                40..=94 => BackfillChange::Continue,
                _ => BackfillChange::Cancel,
            };
            self.change(id, change).await;
        }
        // Its executors may be dead for good, so that each of its runs takes minutes.
        if self.world.plan.mode == Mode::Liveness {
            self.change(id, BackfillChange::Cancel).await;
        }
    }

    fn request(&mut self) -> NewBackfill {
        let count = self.dice.number(3, 12);
        let step = self.dice.pick(&[1_000, 7_000, 60_000]);
        let newest = self.world.now() / 1_000 * 1_000;
        let times: Vec<Timestamp> =
            (1..=count).map(|back| Timestamp::from_millis(newest - back * step)).collect();
        let range = TimeRange { from: times[times.len() - 1], until: Timestamp::from_millis(newest) };
        let settings = BackfillSettings {
            range,
            order: self.dice.pick(&[BackfillOrder::Oldest, BackfillOrder::Newest]),
            parallel: self.dice.number(1, 4) as u32,
            existing: self.dice.pick(&[Existing::Again, Existing::Again, Existing::Skip, Existing::Failed]),
            on_failure: self.dice.pick(&[OnFailure::Continue, OnFailure::Continue, OnFailure::Stop]),
            param: self.dice.chance(0.3).then(|| "backfilled".to_owned()),
            by: "sim".to_owned(),
        };
        NewBackfill { key: self.dice.number(1, i64::MAX / 2), settings, times }
    }

    /// Asks one node after the other until one acknowledges the start. `None` if the job is deleted.
    async fn start(&mut self, new: &NewBackfill) -> Option<BackfillId> {
        loop {
            let request = Request::StartBackfill(self.job, Box::new(new.clone()));
            match self.ask(request).await {
                Some(Ok(Answer::Backfill(id))) => return Some(id),
                Some(Err(StoreError::NoSuchJob(_))) => return None,
                _ => {}
            }
        }
    }

    /// Asks one node after the other until one acknowledges the change, or rejects it.
    async fn change(&mut self, id: BackfillId, change: BackfillChange) {
        loop {
            let answer = self.ask(Request::ChangeBackfill(id, change)).await;
            if let Some(Ok(_) | Err(StoreError::Conflict(_))) = answer {
                return;
            }
        }
    }

    async fn ask(&mut self, request: Request) -> Option<Result<Answer, StoreError>> {
        let node = self.dice.number(0, self.queues.nodes() as i64 - 1) as usize;
        let patience = self.dice.millis(20, 5_000);
        let answer = tokio::time::timeout(patience, self.queues.ask(node, request)).await.ok().flatten();
        let wait = self.dice.millis(50, 800);
        self.world.sleep(wait).await;
        answer
    }
}

/// Lets all backfills run to their ends, and reads these; gives up after `max`.
pub async fn finish(world: &World, database: &Database, executors: &Executors, max: i64) {
    let begun = world.now();
    let ids: Vec<BackfillId> = world.evidence().backfills.iter().map(|seen| seen.id).collect();
    loop {
        let mut is_over = true;
        for id in &ids {
            let found = database.backfill(*id).await.expect("the store itself never fails");
            let found = found.expect("no backfill is old enough to be deleted");
            is_over &= found.ended_at.is_some();
            if found.state == engine::BackfillState::Paused {
                let change = BackfillChange::Continue;
                engine::Store::change_backfill(database, *id, change).await.expect("it is paused");
            }
        }
        if is_over || world.now() - begun > max {
            break;
        }
        // Ends handlers that never end.
        executors.kill_all();
        world.sleep(std::time::Duration::from_secs(3)).await;
    }
    for id in ids {
        let backfill = database.backfill(id).await.expect("the store itself never fails");
        let page = store::Page::first(1_000);
        let times = database.backfill_times(id, None, page).await.expect("the store itself never fails").rows;
        let mut evidence = world.evidence();
        let seen = evidence.backfills.iter_mut().find(|seen| seen.id == id).expect("it was listed");
        seen.end = backfill.map(|backfill| (backfill, times));
    }
}
