//! A program says what its jobs are, each time it starts. What people have changed since stays.
//!
//! What was last declared is kept beside the job. So a field that is still as the program had it follows the program,
//! and a field that is not was changed by somebody and is theirs, until they put it back.

use std::time::Duration;

use cron::Schedule;

use crate::engine::Engine;
use crate::job::{AppId, Job, JobSpec};
use crate::plan::Tick;
use crate::ports::{Declared, StoreError};

/// What a program says of one of its jobs. What it leaves out has its default, and is left to people.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The program's app,
    pub app: AppId,
    /// and the handler to call, by which the job is known within the app.
    pub handler: String,
    /// When it fires.
    pub schedule: Schedule,
    /// For people; the handler's name, if nothing is said.
    pub name: Option<String>,
    /// Given to the handler.
    pub param: Option<String>,
    /// A run that takes longer is stopped.
    pub timeout: Option<Duration>,
    /// How often a failed run is tried again.
    pub retries: Option<u32>,
    /// How an executor is chosen.
    pub route: Option<String>,
}

impl Declaration {
    /// The job that nobody has changed.
    pub fn spec(&self) -> JobSpec {
        let name = self.name.as_ref().unwrap_or(&self.handler);
        let mut spec = JobSpec::new(self.app, name, self.schedule.clone(), &self.handler);
        spec.param = self.param.clone().unwrap_or(spec.param);
        spec.timeout = self.timeout;
        spec.retry.count = self.retries.unwrap_or(spec.retry.count);
        spec.route = self.route.clone().unwrap_or(spec.route);
        spec
    }

    /// What becomes of a job that was declared as `before` and by now is `spec`: each field that is as it was declared
    /// follows, every other stays. Of a job that people made, all stays.
    pub fn merged(&self, before: Option<&Declaration>, spec: &JobSpec) -> JobSpec {
        let mut merged = spec.clone();
        let Some(before) = before.map(Declaration::spec) else { return merged };
        let said = self.spec();
        // The beat of a rate is kept while its period is.
        if is_same(&merged.schedule, &before.schedule) && !is_same(&merged.schedule, &said.schedule) {
            merged.schedule = said.schedule;
        }
        follow(&mut merged.name, &before.name, said.name);
        follow(&mut merged.param, &before.param, said.param);
        follow(&mut merged.timeout, &before.timeout, said.timeout);
        follow(&mut merged.retry.count, &before.retry.count, said.retry.count);
        follow(&mut merged.route, &before.route, said.route);
        merged
    }

    /// The fields of a job that are not what this says, by their names in our API.
    pub fn overridden(&self, job: &Job) -> Vec<&'static str> {
        let spec = &job.spec;
        let differs = [
            ("app", spec.app != self.app),
            ("name", self.name.as_ref().is_some_and(|name| *name != spec.name)),
            ("schedule", !is_same(&spec.schedule, &self.schedule)),
            ("handler", spec.handler != self.handler),
            ("param", self.param.as_ref().is_some_and(|param| *param != spec.param)),
            ("script", spec.script.is_some()),
            ("enabled", !job.enabled),
            ("timeout_ms", self.timeout.is_some() && self.timeout != spec.timeout),
            ("retry", self.retries.is_some_and(|retries| retries != spec.retry.count)),
            ("route", self.route.as_ref().is_some_and(|route| *route != spec.route)),
        ];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field).collect()
    }
}

fn follow<T: PartialEq>(field: &mut T, before: &T, said: T) {
    if field == before {
        *field = said;
    }
}

/// Whether two schedules say the same. A rate that is declared has the beat of its first declaration.
fn is_same(one: &Schedule, other: &Schedule) -> bool {
    match (one, other) {
        (Schedule::FixedRate { period, .. }, Schedule::FixedRate { period: other, .. }) => period == other,
        (one, other) => one == other,
    }
}

impl Engine {
    /// Makes a job be what a program says of it, where nobody has changed it since; adds it under that key, started, if
    /// there is none. Any number of processes may say the same at once. When this returns, nothing of the old schedule is
    /// sent any more.
    pub async fn declare(&self, declaration: &Declaration, key: &str) -> Result<Declared, StoreError> {
        let declared = {
            let tick = Tick::new(self.now(), &*self.inner.router, self.inner.options.bugs);
            self.inner.store.declare(declaration, key, &tick).await?
        };
        if declared.is_change() {
            self.inner.claim_now.notify_one();
        }
        self.confirm(declared.job, false, declared.cancelling).await?;
        Ok(declared)
    }
}

#[cfg(test)]
mod tests {
    use cron::{Cron, DstRule, Timestamp, Zone};

    use super::*;
    use crate::job::JobId;

    fn cron(expression: &str) -> Schedule {
        Schedule::cron(Cron::parse(expression).unwrap(), Zone::utc(), DstRule::NATURAL)
    }

    fn rate(anchor: i64, seconds: u64) -> Schedule {
        Schedule::fixed_rate(Timestamp::from_millis(anchor), Duration::from_secs(seconds)).unwrap()
    }

    fn declared(schedule: Schedule) -> Declaration {
        Declaration {
            app: AppId(1),
            handler: "sync".into(),
            schedule,
            name: None,
            param: None,
            timeout: None,
            retries: None,
            route: None,
        }
    }

    fn job(spec: JobSpec) -> Job {
        Job {
            id: JobId(7),
            spec,
            enabled: true,
            next_fire_at: None,
            revision: 0,
            running: None,
            waiting: 0,
            problem: None,
        }
    }

    #[test]
    fn what_nobody_changed_follows_and_what_somebody_changed_stays() {
        let first = Declaration { param: Some("all".into()), ..declared(cron("0 * * * * ?")) };
        let second = Declaration {
            param: Some("new".into()),
            retries: Some(3),
            timeout: Some(Duration::from_secs(9)),
            name: Some("Sync".into()),
            route: Some("ROUND".into()),
            ..declared(cron("0 0 * * * ?"))
        };
        assert_eq!(second.merged(Some(&first), &first.spec()), second.spec());
        assert_eq!(
            first.merged(Some(&second), &second.spec()),
            first.spec(),
            "what is left out is the default"
        );

        let edited = JobSpec { schedule: cron("0 0 2 * * ?"), author: "ann".into(), ..first.spec() };
        let merged = second.merged(Some(&first), &edited);
        let expected = JobSpec { schedule: cron("0 0 2 * * ?"), author: "ann".into(), ..second.spec() };
        assert_eq!(merged, expected);
        assert_eq!(second.overridden(&job(merged)), ["schedule"]);
        assert_eq!(second.merged(None, &edited), edited, "a job that people made stays theirs");
        assert_eq!(
            second.overridden(&job(edited)),
            ["name", "schedule", "param", "timeout_ms", "retry", "route"]
        );
    }

    #[test]
    fn what_is_put_back_follows_again() {
        let (first, second) = (declared(cron("0 * * * * ?")), declared(cron("0 0 * * * ?")));
        let back = JobSpec { schedule: second.schedule.clone(), ..first.spec() };
        assert!(second.overridden(&job(back.clone())).is_empty());
        assert_eq!(first.merged(Some(&second), &back), first.spec());
    }

    #[test]
    fn a_rate_keeps_its_beat() {
        let (first, again) = (declared(rate(1_000, 5)), declared(rate(2_000, 5)));
        assert_eq!(again.merged(Some(&first), &first.spec()), first.spec());
        assert!(again.overridden(&job(first.spec())).is_empty());
        let slower = declared(rate(2_000, 6));
        assert_eq!(slower.merged(Some(&first), &first.spec()), slower.spec());
    }

    #[test]
    fn what_the_program_says_nothing_about_is_no_contradiction() {
        let said = declared(cron("0 * * * * ?"));
        let edited = JobSpec { name: "Sync".into(), param: "x".into(), route: "LAST".into(), ..said.spec() };
        assert!(said.overridden(&job(edited)).is_empty());
        let elsewhere = JobSpec { app: AppId(2), handler: "other".into(), ..said.spec() };
        let stopped = Job { enabled: false, ..job(elsewhere) };
        assert_eq!(said.overridden(&stopped), ["app", "handler", "enabled"]);
    }
}
