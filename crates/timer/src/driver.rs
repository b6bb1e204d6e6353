//! The one task that owns the wheels: it handles commands, queues due tasks and starts runs up to the limit.
//!
//! A task is in one state at a time: waiting in a wheel, queued because it is due, or running. It returns to a wheel
//! only after its run has ended, so it never runs concurrently with itself and is queued at most once.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cron::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::handle::Shared;
use crate::hooks::{Hooks, Late};
use crate::run::{Body, Completion, Ticket};
use crate::when::{Due, Next, Now};
use crate::{Clock, Key, TaskId, Wheel};

pub(crate) enum Command {
    Add { id: TaskId, shared: Arc<Shared>, due: Due, body: Body },
    Cancel(TaskId),
    Shutdown { grace: Duration, reply: oneshot::Sender<Shutdown> },
}

/// Tasks that were running or queued at a shutdown, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shutdown {
    /// Tasks that ended within the grace period.
    pub finished: Vec<Arc<str>>,
    /// Tasks still running at the end of the grace period. Async runs were dropped at their next `.await`; blocking
    /// runs cannot be stopped and continue.
    pub abandoned: Vec<Arc<str>>,
    /// Tasks that were due and queued, and never started.
    pub unstarted: Vec<Arc<str>>,
}

/// Load of a scheduler.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub tasks: AtomicUsize,
    pub held: AtomicUsize,
    pub running: AtomicUsize,
}

pub(crate) struct Driver {
    clock: Arc<dyn Clock>,
    hooks: Arc<Hooks>,
    gauges: Arc<Gauges>,
    limit: usize,
    commands: mpsc::UnboundedReceiver<Command>,
    tasks: BTreeMap<TaskId, Task>,
    wall: Wheel<TaskId>,
    /// Its times are milliseconds on the monotonic clock.
    monotonic: Wheel<TaskId>,
    /// Due tasks, in the order they became due. Cancelled ones are skipped when their turn comes.
    line: VecDeque<TaskId>,
    running: JoinSet<Completion>,
    /// Last wall clock time read, to detect that the clock was set back.
    last_wall: Timestamp,
}

struct Task {
    shared: Arc<Shared>,
    due: Due,
    state: TaskState,
}

enum TaskState {
    Waiting(Key, Body),
    InLine(Body),
    Running,
}

impl Driver {
    pub fn new(
        clock: Arc<dyn Clock>,
        hooks: Arc<Hooks>,
        gauges: Arc<Gauges>,
        limit: usize,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        let now = Now::read(&*clock);
        Driver {
            clock,
            hooks,
            gauges,
            limit,
            commands,
            tasks: BTreeMap::new(),
            wall: Wheel::new(now.wall),
            monotonic: Wheel::new(elapsed(now)),
            line: VecDeque::new(),
            running: JoinSet::new(),
            last_wall: now.wall,
        }
    }

    /// Runs until a shutdown is requested or the scheduler is dropped.
    pub async fn run(mut self) {
        let mut commands = Vec::new();
        loop {
            while let Some(Ok(completion)) = self.running.try_join_next() {
                self.complete(completion);
            }
            let now = Now::read(&*self.clock);
            self.notice_step_back(now);
            self.line_up_due(now);
            self.start_runs(now);
            self.show_gauges();
            let sleep = sleep(&*self.clock, self.until_next(now));
            tokio::select! {
                biased;
                received = self.commands.recv_many(&mut commands, COMMANDS_MAX) => {
                    if received == 0 {
                        return;
                    }
                    if let Some((grace, reply)) = self.obey(commands.drain(..)) {
                        let report = self.shut_down(grace).await;
                        drop(self);
                        // The caller may have stopped waiting.
                        let _ = reply.send(report);
                        return;
                    }
                }
                Some(Ok(completion)) = self.running.join_next() => self.complete(completion),
                () = sleep => {}
            }
        }
    }

    /// Executes commands; returns the shutdown request if there is one.
    fn obey(
        &mut self,
        commands: impl Iterator<Item = Command>,
    ) -> Option<(Duration, oneshot::Sender<Shutdown>)> {
        let mut shutdown = None;
        for command in commands {
            match command {
                Command::Add { id, shared, due, body } => self.wait(id, shared, due, body),
                Command::Cancel(id) => self.cancel(id),
                Command::Shutdown { grace, reply } => shutdown = shutdown.or(Some((grace, reply))),
            }
        }
        shutdown
    }

    /// Puts a task into the wheel of its clock.
    fn wait(&mut self, id: TaskId, shared: Arc<Shared>, due: Due, body: Body) {
        let key = match due {
            Due::Wall(at) => self.wall.insert(at, id),
            Due::Monotonic(at) => self.monotonic.insert(whole_millis_not_before(at), id),
        };
        self.tasks.insert(id, Task { shared, due, state: TaskState::Waiting(key, body) });
    }

    fn cancel(&mut self, id: TaskId) {
        // A running task ends when its run completes.
        if let Some(task) = self.tasks.remove(&id) {
            match task.state {
                TaskState::Waiting(key, _) => drop(self.wheel(task.due).cancel(key)),
                TaskState::InLine(_) => {}
                TaskState::Running => {
                    self.tasks.insert(id, task);
                    return;
                }
            }
            task.shared.end();
        }
    }

    /// Recomputes calendars after the wall clock was set back: their next time may now be far away.
    fn notice_step_back(&mut self, now: Now) {
        let was_set_back = now.wall < self.last_wall;
        self.last_wall = now.wall;
        if !was_set_back {
            return;
        }
        for (id, task) in &mut self.tasks {
            if let TaskState::Waiting(key, body) = &mut task.state
                && body.when.is_calendar()
                && let Some(due @ Due::Wall(at)) = body.when.rewound(now)
            {
                self.wall.cancel(*key);
                *key = self.wall.insert(at, *id);
                task.due = due;
                task.shared.status().next = Some(due);
            }
        }
    }

    /// Moves due tasks from the wheels into the queue.
    fn line_up_due(&mut self, now: Now) {
        let mut due = Vec::new();
        self.monotonic.advance(elapsed(now), &mut due);
        self.wall.advance(now.wall, &mut due);
        let mut held = Vec::new();
        for (_, id) in due {
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            let TaskState::Waiting(_, body) = std::mem::replace(&mut task.state, TaskState::Running) else {
                continue;
            };
            task.state = TaskState::InLine(body);
            if self.running.len() + self.line.len() >= self.limit {
                held.push(Late::Held {
                    task: Arc::clone(&task.shared.name),
                    scheduled_at: task.due.at(now),
                    ahead: self.line.len(),
                });
            }
            self.line.push_back(id);
        }
        if !held.is_empty() {
            let hooks = Arc::clone(&self.hooks);
            // In a task of its own, because a slow hook would delay everything here.
            tokio::spawn(async move { held.iter().for_each(|late| hooks.late(late)) });
        }
    }

    /// Starts runs from the head of the queue up to the limit.
    fn start_runs(&mut self, now: Now) {
        while self.running.len() < self.limit
            && let Some(id) = self.line.pop_front()
        {
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            let TaskState::InLine(mut body) = std::mem::replace(&mut task.state, TaskState::Running) else {
                continue;
            };
            let mut status = task.shared.status();
            if status.is_cancelled {
                drop(status);
                self.end(id);
                continue;
            }
            let start = body.when.start(task.due, now);
            status.is_running = true;
            status.missed += start.missed;
            status.next = match start.next {
                Next::Due(due) => Some(due),
                Next::AfterRun | Next::Never => None,
            };
            drop(status);
            let ticket = Ticket {
                id,
                task: Arc::clone(&task.shared.name),
                due: task.due,
                started: now,
                missed: start.missed,
                next: start.next,
                clock: Arc::clone(&self.clock),
                hooks: Arc::clone(&self.hooks),
            };
            self.running.spawn(ticket.run(body));
        }
    }

    /// Records the end of a run and puts the task back into a wheel if it runs again.
    fn complete(&mut self, completion: Completion) {
        let Completion { id, run, failed, again } = completion;
        let Some(task) = self.tasks.remove(&id) else { return };
        let mut status = task.shared.status();
        status.is_running = false;
        status.last_run = Some(run);
        status.count += 1;
        status.failures += u64::from(failed);
        let again = again.filter(|_| !status.is_cancelled);
        status.next = again.as_ref().map(|(due, _)| *due);
        drop(status);
        match again {
            Some((due, body)) => self.wait(id, task.shared, due, body),
            None => task.shared.end(),
        }
    }

    fn end(&mut self, id: TaskId) {
        if let Some(task) = self.tasks.remove(&id) {
            task.shared.end();
        }
    }

    /// Time until a task is due or the wall clock must be checked.
    fn until_next(&self, now: Now) -> Option<Duration> {
        let monotonic = self.monotonic.next_at().map(|at| monotonic(at).saturating_sub(now.monotonic));
        let wall = self.wall.next_at().map(|at| at.duration_since(now.wall).min(STEP_NOTICED_WITHIN));
        monotonic.into_iter().chain(wall).min()
    }

    fn wheel(&mut self, due: Due) -> &mut Wheel<TaskId> {
        match due {
            Due::Wall(_) => &mut self.wall,
            Due::Monotonic(_) => &mut self.monotonic,
        }
    }

    fn show_gauges(&self) {
        self.gauges.tasks.store(self.tasks.len(), Ordering::Relaxed);
        self.gauges.held.store(self.line.len(), Ordering::Relaxed);
        self.gauges.running.store(self.running.len(), Ordering::Relaxed);
    }

    /// Starts nothing more, and waits for current runs until the grace period is over.
    async fn shut_down(&mut self, grace: Duration) -> Shutdown {
        // Tasks added from now on are over at once.
        self.commands.close();
        let mut report = Shutdown::default();
        for id in self.line.drain(..) {
            report.unstarted.extend(self.tasks.get(&id).map(|task| Arc::clone(&task.shared.name)));
        }
        let mut grace = self.clock.sleep(grace);
        loop {
            tokio::select! {
                biased;
                ended = self.running.join_next() => match ended {
                    Some(Ok(completion)) => {
                        let task = self.tasks.get(&completion.id);
                        report.finished.extend(task.map(|task| Arc::clone(&task.shared.name)));
                        self.complete(completion);
                    }
                    Some(Err(_)) => {}
                    None => break,
                },
                () = &mut grace => break,
            }
        }
        let still = self.tasks.values().filter(|task| matches!(task.state, TaskState::Running));
        report.abandoned = still.map(|task| Arc::clone(&task.shared.name)).collect();
        report
    }
}

impl Drop for Driver {
    /// Ends every task, however the driver ends. Async runs are dropped with their set.
    fn drop(&mut self) {
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            if let Command::Add { shared, .. } = command {
                shared.end();
            }
        }
        for task in self.tasks.values() {
            task.shared.end();
        }
        self.tasks.clear();
        self.line.clear();
        self.running.abort_all();
        self.show_gauges();
    }
}

/// Maximum commands per clock reading; with more, a flood of commands would delay due tasks.
const COMMANDS_MAX: usize = 1_024;

/// Nothing notifies us when the wall clock is set, so it is read this often while a task waits for it.
const STEP_NOTICED_WITHIN: Duration = Duration::from_millis(250);

async fn sleep(clock: &dyn Clock, length: Option<Duration>) {
    match length {
        Some(length) => clock.sleep(length).await,
        None => pending().await,
    }
}

/// The monotonic clock as a wheel time, rounded down so that nothing fires early.
fn elapsed(now: Now) -> Timestamp {
    Timestamp::from_millis(0) + now.monotonic
}

fn monotonic(at: Timestamp) -> Duration {
    at.duration_since(Timestamp::from_millis(0))
}

fn whole_millis_not_before(at: Duration) -> Timestamp {
    Timestamp::from_millis(0) + at.saturating_add(Duration::from_nanos(999_999))
}
