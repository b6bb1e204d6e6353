//! `/api/declare`: an executor of our SDK registers its handlers and declares the jobs that call them.
//!
//! The token decides the app, and only jobs of that app can be declared. A declaration does not override settings
//! that were changed by a user; repeating it changes nothing, and is not recorded.

use std::net::IpAddr;

use engine::{AppId, Declaration, Declared, JobSpec};
use protocol::declare::{self, DeclaredJob, JOBS_MAX, Outcome, Settled};
use protocol::v1::ProblemCode;
use protocol::xxl::Answer;
use serde_json::{Value, json};
use store::Registration;

use super::v1::job_body::{Reading, schedule_words};
use super::xxl_executors::{ExecutorState, unreadable_body};
use crate::audit;
use crate::executors::Scope;
use crate::request_error::RequestError;
use crate::settings::DeclaredJobs;

/// Caller of a declaration.
pub struct Declarer<'a> {
    /// Scope of its token.
    pub scope: Scope,
    /// Name of its app.
    pub app: &'a str,
    /// IP address of the caller.
    pub ip: IpAddr,
}

impl ExecutorState {
    /// Handles the request, once the rate limit allows it.
    pub(super) async fn answer_declaration(
        &self,
        who: Declarer<'_>,
        body: &[u8],
    ) -> Result<Answer, RequestError> {
        self.wait_for_turn(who.scope, who.ip).await?;
        let said: declare::Declaration = serde_json::from_slice(body).map_err(unreadable_body)?;
        if said.jobs.len() > JOBS_MAX {
            return Err(RequestError::invalid(format!(
                "a request may declare at most {JOBS_MAX} jobs; send the others in another request"
            )));
        }
        let settled = self.take_declaration(who, said).await?;
        Ok(Answer::with(serde_json::to_value(settled).expect("texts can be serialized")))
    }

    async fn take_declaration(
        &self,
        who: Declarer<'_>,
        said: declare::Declaration,
    ) -> Result<Vec<Settled>, RequestError> {
        let executor = Registration { app: who.app.into(), address: said.address.trim().into() };
        self.registrar.note_handlers(executor, said.handlers).await?;
        let allowed = self.admit_declarations(&who);
        let mut settled = Vec::with_capacity(said.jobs.len());
        for job in said.jobs {
            let declared = match &allowed {
                Ok(app) => self.declare(&who, *app, &job).await,
                Err(error) => Err(error.clone()),
            };
            if let Err(error) = &declared
                && error.code == ProblemCode::DatabaseUnavailable
            {
                return Err(error.clone());
            }
            self.put_on_record(&who, &job, &declared).await;
            settled.push(outcome(job.handler, declared));
        }
        Ok(settled)
    }

    /// App in which the caller may declare jobs.
    fn admit_declarations(&self, who: &Declarer<'_>) -> Result<AppId, RequestError> {
        let refused = |why: String| RequestError::new(ProblemCode::NotAllowed, why);
        match (self.declared_jobs, who.scope) {
            (DeclaredJobs::None, _) => {
                let why = "declared jobs are disabled; add the jobs manually, or start the scheduling centre \
                           with --declared-jobs own-token";
                Err(refused(why.into()))
            }
            (DeclaredJobs::OwnToken, Scope::Every | Scope::Anonymous(_)) => Err(refused(format!(
                "declaring jobs requires a token of the app; create one with `tickwright app token {}`, or \
                 start the scheduling centre with --declared-jobs all",
                who.app
            ))),
            _ => self.directory.app_named(who.app).ok_or_else(|| {
                refused(format!(
                    "the app `{0}` does not exist; add it with: tickwright app add {0}, then restart this \
                     program",
                    who.app
                ))
            }),
        }
    }

    async fn declare(
        &self,
        who: &Declarer<'_>,
        app: AppId,
        job: &DeclaredJob,
    ) -> Result<Declared, RequestError> {
        let reading = Reading { zone: &self.jobs.zone, now: self.engine.now(), before: None, workdays: None };
        let spec = reading.spec(&job.body(who.app), app, Vec::new(), None).map_err(RequestError::fields)?;
        let declaration = Declaration {
            app,
            handler: spec.handler,
            schedule: spec.schedule,
            name: job.name.as_ref().map(|_| spec.name),
            param: job.param.clone(),
            timeout: spec.timeout,
            retries: job.retries,
            route: job.route.clone(),
        };
        let principal = self.principal(who.scope);
        self.jobs.by(&principal).declare(&declaration, who.app).await
    }

    /// Records every change, but only a bounded number of rejections: a program that cannot start retries forever.
    async fn put_on_record(
        &self,
        who: &Declarer<'_>,
        job: &DeclaredJob,
        declared: &Result<Declared, RequestError>,
    ) {
        let name = self.principal(who.scope).name;
        let entry = |result: &str| audit::entry("executor", &name, who.ip, "job.declare", result);
        match declared {
            Ok(declared) if declared.is_change() => {
                let mut entry = entry("done");
                entry.object = format!("job:{}", declared.job);
                entry.before = declared.before.as_ref().map(|spec| self.written(spec).to_string());
                entry.after = Some(self.written(&declared.after).to_string());
                self.audit.record(entry).await;
            }
            Ok(_) => {}
            Err(error) => {
                let mut entry = entry(&error.message);
                entry.object = format!("handler:{}", job.handler);
                self.audit.refused(entry).await;
            }
        }
    }

    /// The part of a job that a program can declare, as API types.
    fn written(&self, spec: &JobSpec) -> Value {
        json!({
            "name": spec.name,
            "schedule": schedule_words(&spec.schedule, &self.jobs.zone),
            "handler": spec.handler,
            "param": spec.param,
            "timeout_ms": spec.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            "retry": { "count": spec.retry.count },
            "route": spec.route,
        })
    }
}

fn outcome(handler: String, declared: Result<Declared, RequestError>) -> Settled {
    match declared {
        Ok(declared) => {
            let outcome = match (&declared.before, declared.is_change()) {
                (None, _) => Outcome::Created,
                (Some(_), true) => Outcome::Changed,
                (Some(_), false) => Outcome::Unchanged,
            };
            let overridden = declared.overridden.into_iter().map(str::to_owned).collect();
            Settled { handler, outcome, overridden }
        }
        Err(error) => {
            error.log("/api/declare");
            Settled { handler, outcome: Outcome::Refused { why: error.message }, overridden: Vec::new() }
        }
    }
}
