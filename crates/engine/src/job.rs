//! Jobs: their definition, schedule and policies.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use cron::{Beyond, Schedule, Timestamp, Workdays};
pub use words::{ChildrenMode, ScriptLanguage};

use crate::policy::{Block, Delivery, Misfire, Named, Overlap, Retry, Route};
use crate::run::RunId;

/// Id of a job; never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub i64);

impl JobId {
    /// Stand-in for the id of a job that an earlier change of the same batch adds; only in [`JobSpec::children`].
    pub fn added_by(change: usize) -> JobId {
        JobId(i64::try_from(change).map_or(i64::MIN, |change| -1 - change))
    }

    /// The change that this is a stand-in for; `None` for an id.
    pub fn stands_for(self) -> Option<usize> {
        if self.0 < 0 { usize::try_from(-1 - self.0).ok() } else { None }
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Id of an app: a group of executors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId(pub i64);

/// Id of a stored definition of a workflow. Definitions never change: each version of a workflow has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkflowId(pub i64);

/// Id of a work calendar; never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CalendarId(pub i64);

/// Work calendar of a job: its days, and the rule for scheduled times on other days.
#[derive(Clone, Debug, PartialEq)]
pub struct JobWorkdays {
    /// Id of the calendar.
    pub calendar: CalendarId,
    /// Name of the calendar.
    pub name: String,
    /// Revision of the calendar, incremented by each change of its days.
    pub revision: i64,
    /// The days and the rule.
    pub rule: Workdays,
}

/// A job as stored: its definition and the state of its schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Id of the job.
    pub id: JobId,
    /// Definition by the user.
    pub spec: JobSpec,
    /// Whether its schedule is active. A stopped job can still be triggered manually.
    pub enabled: bool,
    /// Next scheduled time that is not claimed yet. `None`: stopped, ended, or (fixed delay) waiting for the end of
    /// a run.
    pub next_fire_at: Option<Timestamp>,
    /// Revision, incremented by each edit; an edit based on an older one is rejected.
    pub revision: i64,
    /// Number of fires of its schedule that were claimed, if [`JobSpec::max_fires`] limits them.
    pub fires: u64,
    /// Active run of the job, if [`Overlap`] allows only one.
    pub running: Option<RunId>,
    /// Number of its runs that wait for the active one. Counted only if [`Overlap`] allows only one.
    pub waiting: u64,
    /// Why the schedule is invalid, if it is; such a job never fires.
    pub problem: Option<String>,
}

/// Definition of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// Stable and unique key that identifies the job for programs, if any.
    pub key: Option<String>,
    /// App whose executors run it.
    pub app: AppId,
    /// Display name.
    pub name: String,
    /// Schedule of the job.
    pub schedule: Schedule,
    /// Work calendar that keeps, skips or moves the times of a cron expression or timetable.
    pub workdays: Option<JobWorkdays>,
    /// The schedule fires only from this time on.
    pub valid_from: Option<Timestamp>,
    /// The schedule fires only up to this time.
    pub valid_until: Option<Timestamp>,
    /// Maximum number of fires of the schedule; then the job is stopped.
    pub max_fires: Option<u64>,
    /// Maximum delay of each fire, to spread jobs with the same scheduled time. Always the same for one fire.
    pub jitter: Duration,
    /// Misfire policy: how to handle fires that could not be sent in time.
    pub misfire: Misfire,
    /// Overlap policy: whether its runs may overlap, across all executors.
    pub overlap: Overlap,
    /// Retry policy of failed runs.
    pub retry: Retry,
    /// Delivery policy: how to continue when it is unknown whether a request arrived.
    pub delivery: Delivery,
    /// Timeout: a run that takes longer is stopped and ends as timed out.
    pub timeout: Option<Duration>,
    /// Handler to call. Ignored for a script job.
    pub handler: String,
    /// Script that the executor runs instead. It is changed separately from the rest of the definition, because its
    /// earlier versions are kept: an edit of the job leaves it unchanged.
    pub script: Option<Script>,
    /// Workflow that a run of the job consists of, instead of a handler or script.
    pub workflow: Option<WorkflowId>,
    /// Parameter passed to the handler.
    pub param: String,
    /// Routing strategy, applied by the [`Router`](crate::policy::Router).
    pub route: Named<Route>,
    /// Block strategy for a second run on the same executor; passed through to the executor.
    pub block: Named<Block>,
    /// Jobs to run when this one succeeds.
    pub children: Vec<JobId>,
    /// How often the children run if this job runs in shards.
    pub children_mode: ChildrenMode,
    /// Whether a failed run raises an alert.
    pub alert: bool,
    /// Mail addresses to notify, separated by commas.
    pub alert_to: String,
    /// Person responsible for the job.
    pub author: String,
}

impl Job {
    /// Number of fires that its schedule still has; `None` without a limit.
    pub fn fires_left(&self) -> Option<u64> {
        self.spec.max_fires.map(|max| max.saturating_sub(self.fires))
    }
}

impl JobSpec {
    /// Creates a job with the defaults: misfires skipped after 5 s, runs may overlap, no retries, delivery policy
    /// probe.
    pub fn new(app: AppId, name: impl Into<String>, schedule: Schedule, handler: impl Into<String>) -> Self {
        JobSpec {
            key: None,
            app,
            name: name.into(),
            schedule,
            workdays: None,
            valid_from: None,
            valid_until: None,
            max_fires: None,
            jitter: Duration::ZERO,
            misfire: Misfire::Skip,
            overlap: Overlap::Allow,
            retry: Retry::NONE,
            delivery: Delivery::Probe,
            timeout: None,
            handler: handler.into(),
            script: None,
            workflow: None,
            param: String::new(),
            route: Named::default(),
            block: Named::default(),
            children: Vec::new(),
            children_mode: ChildrenMode::Once,
            alert: false,
            alert_to: String::new(),
            author: String::new(),
        }
    }

    /// The schedule as the work calendar keeps or moves its times.
    pub fn planned(&self) -> Cow<'_, Schedule> {
        match self.workdays.as_ref().and_then(|workdays| self.schedule.on(&workdays.rule)) {
            Some(timetable) => Cow::Owned(Schedule::Timetable(timetable)),
            None => Cow::Borrowed(&self.schedule),
        }
    }

    /// Whether a job without a next fire stays started: more data of its work calendar may give it one.
    pub fn awaits_calendar(&self) -> bool {
        let stops = |workdays: &JobWorkdays| {
            let calendar = &workdays.rule.calendar;
            calendar.beyond == Beyond::Stop && calendar.known_until.is_some()
        };
        self.workdays.as_ref().is_some_and(stops)
    }

    /// Whether the job is claimed only when it is due. An exclusive job is, because the other run may end until then;
    /// so is one whose fires are counted, because a fire that was claimed ahead may be withdrawn.
    pub fn is_claimed_when_due(&self) -> bool {
        self.overlap.is_exclusive() || self.max_fires.is_some()
    }

    /// First scheduled time after `after`, within the job's validity.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = match self.valid_from {
            // The first valid time itself may fire.
            Some(from) => after.max(from - Duration::from_millis(1)),
            None => after,
        };
        self.planned().next_after(after).filter(|at| self.is_valid_still(*at))
    }

    /// Next fire after a run that ended, or after the job was started, at `ended`, within the job's validity; none
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
    /// Language of the script.
    pub language: ScriptLanguage,
    /// Source code.
    pub source: String,
    /// Time of the last change: executors distinguish versions by it.
    pub edited_at: Timestamp,
}
