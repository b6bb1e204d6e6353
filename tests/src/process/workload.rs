//! Jobs with fires that are known in advance: fixed rate, between two times.

use std::time::Duration;

use anyhow::{Result, ensure};
use cron::Schedule;
use engine::policy::{Misfire, Route};
use engine::{AppId, JobSpec, Store as _};
use timer::Timestamp;

use crate::database::Home;

/// The jobs of one test.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Number of jobs.
    pub jobs: u64,
    /// Interval of all jobs.
    pub period: Duration,
    /// Distribution of the jobs within the interval.
    pub phases: Phases,
    /// Templates used in turn for the jobs; their number is a power of two.
    pub templates: Vec<Template>,
    /// First fire of the first job.
    pub first: Timestamp,
    /// No fire is later than this.
    pub last: Timestamp,
}

/// Distribution of jobs within their interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phases {
    /// Evenly distributed.
    Spread,
    /// All at the same time.
    Together,
}

/// Settings in which jobs may differ.
#[derive(Clone, Debug)]
pub struct Template {
    /// Routing strategy.
    pub route: Route,
    /// Misfire policy.
    pub misfire: Misfire,
}

impl Template {
    /// Every fire is sent, at any lateness, to the executors in turn.
    pub fn every() -> Template {
        let misfire = Misfire::FireAll { window: Duration::from_secs(3_600), max: 1_000 };
        Template { route: Route::RoundRobin, misfire }
    }

    /// Fires that are too late are skipped and recorded.
    pub fn skipping() -> Template {
        Template { misfire: Misfire::Skip, ..Template::every() }
    }

    /// Every fire is sent to all executors.
    pub fn broadcast() -> Template {
        Template { route: Route::Broadcast, ..Template::every() }
    }
}

impl Workload {
    /// Identical jobs that fire every second; `first` and `last` are set later.
    pub fn each_second(jobs: u64, phases: Phases) -> Workload {
        Workload {
            jobs,
            period: Duration::from_secs(1),
            phases,
            templates: vec![Template::every()],
            first: Timestamp::default(),
            last: Timestamp::default(),
        }
    }

    /// The template of a job.
    pub fn template(&self, job: i64) -> &Template {
        let place = usize::try_from(job - 1).unwrap_or(0);
        &self.templates[place % self.templates.len()]
    }

    /// Ids of the jobs.
    pub fn ids(&self) -> impl Iterator<Item = i64> {
        1..=i64::try_from(self.jobs).unwrap_or(i64::MAX)
    }

    /// All scheduled times of a job, in milliseconds.
    pub fn instants(&self, job: i64) -> impl Iterator<Item = i64> {
        let step = usize::try_from(self.period.as_millis()).unwrap_or(usize::MAX);
        (self.anchor(job)..=self.last.as_millis()).step_by(step)
    }

    fn anchor(&self, job: i64) -> i64 {
        let period = self.period.as_millis() as i64;
        let offset = match self.phases {
            Phases::Spread => (job - 1) * period / self.jobs as i64,
            Phases::Together => 0,
        };
        self.first.as_millis() + offset
    }

    /// Writes the jobs to a new database, started. `first` is the current time plus `lead`.
    pub async fn write(&mut self, home: &Home, app: AppId, lead: Duration, length: Duration) -> Result<()> {
        ensure!(self.templates.len().is_power_of_two(), "jobs are copied by twos");
        let store = home.open().await?;
        for template in &self.templates {
            let schedule = Schedule::fixed_rate(Timestamp::from_millis(0), self.period)?;
            let mut spec = JobSpec::new(app, "each second", schedule, "journal");
            spec.route = template.route.into();
            spec.misfire = template.misfire;
            spec.param = r#"{"source":"shop","target":"warehouse","limit":1000}"#.into();
            store.create_job(&spec).await?;
        }
        drop(store);
        home.run(&self.copies()).await?;
        home.count().await?;
        self.first = Timestamp::from_millis((super::micros_now() / 1_000 / 1_000 + 1) * 1_000) + lead;
        self.last = self.first + length - Duration::from_millis(1);
        home.run(&self.start()).await
    }

    /// SQL that copies the templates repeatedly, doubling each time.
    fn copies(&self) -> Vec<String> {
        let mut sql = Vec::new();
        let mut count = self.templates.len() as u64;
        while count < self.jobs {
            let copied = format!("id <= {count} AND id + {count} <= {}", self.jobs);
            sql.push(format!(
                "INSERT INTO xxl_job_info (id, {JOB}) SELECT id + {count}, {JOB} FROM xxl_job_info WHERE {copied}"
            ));
            let copied = copied.replace("id", "job_id");
            sql.push(format!(
                "INSERT INTO tw_job (job_id, {OWN}) SELECT job_id + {count}, {OWN} FROM tw_job WHERE {copied}"
            ));
            count *= 2;
        }
        sql
    }

    fn start(&self) -> Vec<String> {
        let (first, last, period) = (self.first.as_millis(), self.last.as_millis(), self.period.as_millis());
        let anchor = |id: &str| match self.phases {
            Phases::Spread => {
                // Integer division that works in all databases: subtract the remainder first.
                let jobs = self.jobs;
                format!("{first} + (({id} - 1) * {period} - (({id} - 1) * {period}) % {jobs}) / {jobs}")
            }
            Phases::Together => format!("{first} + 0 * {id}"),
        };
        let (job, own) = (anchor("id"), anchor("job_id"));
        vec![
            format!("UPDATE xxl_job_info SET trigger_status = 1, trigger_next_time = {job}"),
            format!(
                "UPDATE tw_job SET anchor_ms = {own}, next_ms = {own}, claim_ms = {own} - 1500, valid_until_ms = {last}"
            ),
        ]
    }
}

const JOB: &str = "job_group, job_desc, add_time, update_time, author, alarm_email, schedule_type, schedule_conf, \
     misfire_strategy, executor_route_strategy, executor_handler, executor_param, executor_block_strategy, \
     executor_timeout, executor_fail_retry_count, glue_type, glue_source, glue_remark, glue_updatetime, child_jobid, \
     trigger_status, trigger_last_time, trigger_next_time";
const OWN: &str = "zone, dst_rule, anchor_ms, schedule_kind, schedule_text, jitter_ms, timeout_ms, misfire, overlap, \
     retry, delivery, children_mode, alert, revision";
