//! A job: what runs, when, and under which policies.

use std::fmt;
use std::time::Duration;

use cron::{Schedule, Timestamp};

use crate::policy::{Delivery, Misfire, Overlap, Retry};
use crate::run::RunId;

/// Names a job, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub i64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names a group of executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId(pub i64);

/// A job as the store holds it: its definition and where it stands in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name in the store.
    pub id: JobId,
    /// What people wrote.
    pub spec: JobSpec,
    /// Whether its schedule fires. A stopped job can still be triggered by hand.
    pub enabled: bool,
    /// The next instant of its schedule that nobody has claimed. `None`: stopped, over, or (fixed delay)
    /// waiting for the end of a run.
    pub next_fire_at: Option<Timestamp>,
    /// Counts the edits; an edit that read an older one is refused.
    pub revision: i64,
    /// The run that holds the job's one place, where [`Overlap`] allows only one.
    pub running: Option<RunId>,
    /// How many of its runs wait for that place. Counted only where there is one place.
    pub waiting: u64,
    /// Why its schedule cannot be used, if it cannot: such a job never fires and says so.
    pub problem: Option<String>,
}

/// What people write about a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// The stable key by which programs name it, if they do. Unique.
    pub key: Option<String>,
    /// The group of executors that run it.
    pub app: AppId,
    /// For people.
    pub name: String,
    /// When it fires.
    pub schedule: Schedule,
    /// Its schedule fires only from here on,
    pub valid_from: Option<Timestamp>,
    /// and up to here.
    pub valid_until: Option<Timestamp>,
    /// Each fire is sent up to this much after its instant, always the same for one fire, so that many jobs
    /// of one instant spread out.
    pub jitter: Duration,
    /// What to do with fires that could not be sent in time.
    pub misfire: Misfire,
    /// Whether its runs may overlap, across all executors.
    pub overlap: Overlap,
    /// What to do when a run fails.
    pub retry: Retry,
    /// What to do when nobody knows whether a request arrived.
    pub delivery: Delivery,
    /// A run that takes longer is stopped and counts as timed out.
    pub timeout: Option<Duration>,
    /// The handler to call. Not asked for where there is a script.
    pub handler: String,
    /// The script that its executor runs instead. Changed apart from the rest of the definition, since its earlier
    /// versions are kept: an edit of the job leaves it as it is.
    pub script: Option<Script>,
    /// Given to the handler.
    pub param: String,
    /// How an executor is chosen: the name of a route, known to the [`Router`](crate::policy::Router).
    pub route: String,
    /// What the executor does with a second run of the job while one is going on there: passed through to it.
    pub block: String,
    /// Jobs that run when this one succeeds,
    pub children: Vec<JobId>,
    /// and how often when it runs in shards.
    pub children_mode: ChildrenMode,
    /// Whether a failed run raises an alert,
    pub alert: bool,
    /// and who is told by mail: addresses with commas between them.
    pub alert_to: String,
    /// Who answers for it.
    pub author: String,
}

impl JobSpec {
    /// A job with the defaults: misfires skipped after 5 s, runs may overlap, no retry, probe on doubt.
    pub fn new(app: AppId, name: impl Into<String>, schedule: Schedule, handler: impl Into<String>) -> Self {
        JobSpec {
            key: None,
            app,
            name: name.into(),
            schedule,
            valid_from: None,
            valid_until: None,
            jitter: Duration::ZERO,
            misfire: Misfire::Skip,
            overlap: Overlap::Allow,
            retry: Retry::NONE,
            delivery: Delivery::Probe,
            timeout: None,
            handler: handler.into(),
            script: None,
            param: String::new(),
            route: "FIRST".into(),
            block: "SERIAL_EXECUTION".into(),
            children: Vec::new(),
            children_mode: ChildrenMode::Once,
            alert: false,
            alert_to: String::new(),
            author: String::new(),
        }
    }

    /// The first instant of the schedule after `after`, inside the job's validity.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = match self.valid_from {
            // The first valid instant itself may fire.
            Some(from) => after.max(from - Duration::from_millis(1)),
            None => after,
        };
        self.schedule.next_after(after).filter(|at| self.is_valid_still(*at))
    }

    /// When to fire after a run that ended at `ended`, or after the job was started then, inside the job's validity; none
    /// unless the schedule counts from there.
    pub fn next_after_end(&self, ended: Timestamp) -> Option<Timestamp> {
        let at = self.schedule.next_after_end(ended)?;
        Some(self.valid_from.map_or(at, |from| at.max(from))).filter(|at| self.is_valid_still(*at))
    }

    fn is_valid_still(&self, at: Timestamp) -> bool {
        self.valid_until.is_none_or(|until| at <= until)
    }
}

/// A script, sent to the executor with each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// What runs it.
    pub language: Language,
    /// What it says.
    pub source: String,
    /// When it was last changed: executors tell versions apart by it.
    pub edited_at: Timestamp,
}

/// The languages of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Bash.
    Shell,
    /// Python 3.
    Python,
    /// Python 2.
    Python2,
    /// PHP.
    Php,
    /// JavaScript in Node.
    Node,
    /// PowerShell.
    PowerShell,
    /// Java's Groovy, which only executors in Java can run.
    Groovy,
}

/// How often the children of a job in shards run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildrenMode {
    /// Once, when every shard of the fire has succeeded.
    Once,
    /// Once for each shard that succeeds, as XXL-JOB does.
    Each,
}
