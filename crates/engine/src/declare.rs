//! Programs declare their jobs each time they start. Changes made by users since are kept.
//!
//! The last declaration is stored with the job. A field that still equals its declared value follows the program; a
//! field that differs was changed by a user and stays, until the user restores it.

use std::time::Duration;

use cron::Schedule;

use crate::engine::Engine;
use crate::job::{AppId, Job, JobSpec};
use crate::plan::Tick;
use crate::policy::{Named, Route};
use crate::ports::{Declared, StoreError};

/// Declaration of one job by a program. An omitted field has its default and is left to users.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// App of the program.
    pub app: AppId,
    /// Handler to call; also identifies the job within the app.
    pub handler: String,
    /// Schedule of the job.
    pub schedule: Schedule,
    /// Display name. Default: the name of the handler.
    pub name: Option<String>,
    /// Parameter passed to the handler.
    pub param: Option<String>,
    /// Timeout: a run that takes longer is stopped.
    pub timeout: Option<Duration>,
    /// Maximum number of retries of a failed run.
    pub retries: Option<u32>,
    /// Routing strategy.
    pub route: Option<Named<Route>>,
}

impl Declaration {
    /// Definition of the job without changes by users.
    pub fn spec(&self) -> JobSpec {
        let name = self.name.as_ref().unwrap_or(&self.handler);
        let mut spec = JobSpec::new(self.app, name, self.schedule.clone(), &self.handler);
        spec.param = self.param.clone().unwrap_or(spec.param);
        spec.timeout = self.timeout;
        spec.retry.count = self.retries.unwrap_or(spec.retry.count);
        spec.route = self.route.clone().unwrap_or(spec.route);
        spec
    }

    /// Merges the declaration into a job that was declared as `before` and is now `spec`: fields that equal the
    /// earlier declaration follow this one, all others stay. A job created by a user stays completely.
    pub fn merged(&self, before: Option<&Declaration>, spec: &JobSpec) -> JobSpec {
        let mut merged = spec.clone();
        let Some(before) = before.map(Declaration::spec) else { return merged };
        let said = self.spec();
        // A fixed rate keeps its anchor while its period is unchanged.
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

    /// Names of the job's fields, as in the API, that differ from this declaration.
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

/// Whether two schedules are equivalent. A declared rate keeps the anchor of its first declaration.
fn is_same(one: &Schedule, other: &Schedule) -> bool {
    match (one, other) {
        (Schedule::FixedRate { period, .. }, Schedule::FixedRate { period: other, .. }) => period == other,
        (one, other) => one == other,
    }
}

impl Engine {
    /// Applies a declaration to its job, except for fields changed by users; adds the job under that key, started,
    /// if it does not exist. Any number of processes may do so at once. When this returns, nothing of the old
    /// schedule is sent any more.
    pub async fn declare(&self, declaration: &Declaration, key: &str) -> Result<Declared, StoreError> {
        let since = self.inner.clock.monotonic();
        let declared = loop {
            let tick = Tick::new(self.now(), &*self.inner.router, self.inner.options.bugs);
            match self.inner.store.declare(declaration, key, &tick).await {
                Err(StoreError::Unsettled(_)) if self.await_earlier_change(since).await? => {}
                declared => break declared?,
            }
        };
        if declared.is_change() {
            self.inner.claim_now.notify_one();
        }
        let asked = if declared.cancelling > 0 { vec![declared.job] } else { Vec::new() };
        self.confirm(Vec::new(), asked).await.map_err(|held| held.error)?;
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
            fires: 0,
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
            route: Some(Route::RoundRobin.into()),
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
        let edited =
            JobSpec { name: "Sync".into(), param: "x".into(), route: Route::Last.into(), ..said.spec() };
        assert!(said.overridden(&job(edited)).is_empty());
        let elsewhere = JobSpec { app: AppId(2), handler: "other".into(), ..said.spec() };
        let stopped = Job { enabled: false, ..job(elsewhere) };
        assert_eq!(said.overridden(&stopped), ["app", "handler", "enabled"]);
    }
}
