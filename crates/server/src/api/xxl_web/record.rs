//! Audit record of a request: caller, object and result.

use std::net::IpAddr;

use engine::AppId;
use serde_json::Value;
use store::{AuditEntry, UserId};

use super::routes::{Call, Needs, Route};
use super::{Reply, Visit};
use crate::api::xxl_error;
use crate::audit;
use crate::request_error::RequestError;

/// An audit entry of this API.
pub fn entry(who: &str, from: IpAddr, route: Route, result: impl Into<String>) -> AuditEntry {
    audit::entry("web", who, from, route.path, result)
}

/// Data for the audit record that must be read before the request is handled, because a deletion removes it.
pub struct Before {
    object: String,
    /// Definition of the job before the change.
    job: Option<String>,
}

impl Visit<'_> {
    /// Reads the object of the request, if the request will be recorded.
    pub(super) async fn before(&self) -> Before {
        match self.is_recorded() {
            true => {
                Before { object: self.object().await, job: self.job_on_record(self.named_job_id()).await }
            }
            false => Before { object: String::new(), job: None },
        }
    }

    /// Records a change, with the job's definition before and after, or a rejection.
    pub(super) async fn remember(&self, result: &Result<Reply, RequestError>, before: Before) {
        if !self.is_recorded() {
            return;
        }
        let Before { mut object, job } = before;
        let mut record = entry(&self.who.name, self.from, self.route, "done");
        match result {
            Ok(Reply::Cleared { record: cleared, more }) => {
                record.after = Some(cleared.to_string());
                record.result = more.as_ref().map_or(record.result, xxl_error::text);
            }
            // A new job gets its id from the database.
            Ok(Reply::Done(Value::String(id))) if self.route.call == Call::AddJob => {
                object = format!("job:{id}");
                record.after = self.job_on_record(Some(id.clone())).await;
            }
            Ok(_) => {
                record.before = job;
                record.after = self.job_on_record(self.named_job_id()).await;
            }
            Err(error) => record.result = xxl_error::text(error),
        }
        self.state.audit.record(AuditEntry { object, ..record }).await;
    }

    /// Records all changes, successful or not, and attempts to read data that only administrators may read.
    fn is_recorded(&self) -> bool {
        let call = self.route.call;
        call.changes() || call.needs() == Needs::Admin && !self.who.is_admin()
    }

    /// Records a rejected attempt to read an object.
    pub(super) async fn put_on_record(&self, object: String, result: String) {
        let entry = AuditEntry { object, ..entry(&self.who.name, self.from, self.route, result) };
        self.state.audit.record(entry).await;
    }

    /// Object of the request, in the same format as in `/v1`, so that one filter finds both.
    async fn object(&self) -> String {
        let of = |kind: &str, name: String| if name.is_empty() { name } else { format!("{kind}:{name}") };
        match self.route.call {
            Call::UpdateJob | Call::RemoveJob | Call::SaveScript => of("job", self.named()),
            Call::StartJob | Call::StopJob | Call::TriggerJob => of("job", self.named()),
            Call::KillRun => of("run", self.named()),
            Call::AddApp => of("app", self.fields.trimmed("appname").to_owned()),
            Call::UpdateApp | Call::RemoveApp | Call::LoadApp => match self.id() {
                Ok(id) => of("app", self.app_name(id)),
                Err(_) => of("app", self.named()),
            },
            Call::ClearRuns => of("app", self.cleared_app_name()),
            Call::AddUser => of("user", self.fields.trimmed("username").to_owned()),
            Call::UpdateUser | Call::RemoveUser => of("user", self.user_name().await),
            Call::ChangePassword | Call::SignOut => of("user", self.who.name.clone()),
            // A new job has no id yet, and lists have no single object.
            _ => String::new(),
        }
    }

    /// Id in the request; if it cannot be parsed, the text as sent.
    fn named(&self) -> String {
        match self.id() {
            Ok(id) => id.to_string(),
            Err(_) => {
                let written = ["id", "ids[]", "ids"].into_iter().flat_map(|name| self.fields.all(name));
                written.filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join(",")
            }
        }
    }

    /// Name of an app, or its id if the app is deleted.
    fn app_name(&self, id: i64) -> String {
        let known = self.state.directory.names().into_iter().find(|(app, _)| *app == AppId(id));
        known.map_or_else(|| id.to_string(), |(_, name)| name)
    }

    /// Name of the app that has its runs deleted; `*` stands for all apps.
    fn cleared_app_name(&self) -> String {
        match self.fields.number("jobGroup") {
            Ok(Some(group)) if group > 0 => self.app_name(group),
            Ok(_) => "*".into(),
            Err(_) => self.fields.trimmed("jobGroup").to_owned(),
        }
    }

    /// Name of the user with the id in the request, or the id if there is no such user.
    async fn user_name(&self) -> String {
        let Ok(id) = self.id() else { return self.named() };
        let user = self.state.database.user(UserId(id)).await.ok().flatten();
        user.map_or_else(|| id.to_string(), |user| user.name)
    }

    /// Id of the job that the request updates or deletes.
    fn named_job_id(&self) -> Option<String> {
        let defines = matches!(self.route.call, Call::UpdateJob | Call::RemoveJob);
        self.id().ok().filter(|_| defines).map(|id| id.to_string())
    }

    /// Definition of a job as stored in the audit log.
    async fn job_on_record(&self, id: Option<String>) -> Option<String> {
        crate::api::v1::text_on_record(&self.state.jobs, &id?).await
    }
}
