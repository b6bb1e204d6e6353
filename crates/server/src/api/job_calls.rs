//! `/api/addJob` and five related calls of the newest protocol version, for programs that manage jobs.
//!
//! A token of an app manages the jobs of that app only; the token for all apps manages all jobs.

use std::net::IpAddr;

use engine::JobId;
use protocol::xxl::{Answer, Fields, JobForm};
use serde_json::Value;
use store::AuditEntry;

use super::xxl_executors::{ExecutorState, unreadable_body};
use super::{v1, xxl_error};
use crate::audit;
use crate::executors::Scope;
use crate::jobs::Jobs;
use crate::request_error::RequestError;

/// Whether a call is one of these.
pub fn is_job_call(name: &str) -> bool {
    CALLS.contains(&name)
}

const CALLS: [&str; 6] = ["addJob", "updateJob", "removeJob", "startJob", "stopJob", "triggerJob"];

/// Calls that create, change or delete a definition: the audit log stores it before and after.
const DEFINING: [&str; 3] = ["addJob", "updateJob", "removeJob"];

impl ExecutorState {
    /// Handles one of these calls, once the rate limit allows it, and records it in the audit log.
    pub(super) async fn answer_job_call(
        &self,
        name: &str,
        scope: Scope,
        from: IpAddr,
        body: &[u8],
    ) -> Result<Answer, RequestError> {
        let who = self.principal(scope);
        self.wait_for_turn(scope, from).await?;
        let fields = Fields::from_json(body).map_err(unreadable_body)?;
        let jobs = self.jobs.by(&who);
        let on_record = async |id: &str| match DEFINING.contains(&name) {
            true => v1::text_on_record(&self.jobs, id).await,
            false => None,
        };
        let named = match (name, fields.number("id")) {
            // A new job gets its id from the database; an id in the request is ignored.
            ("addJob", _) | (_, Ok(None)) => String::new(),
            // Normalised, as in the audit log's other entries.
            (_, Ok(Some(id))) => id.to_string(),
            (_, Err(_)) => fields.trimmed("id").to_owned(),
        };
        let before = on_record(&named).await;
        let done = manage(&jobs, name, &fields).await;
        let id = match &done {
            Ok(Answer { payload: Value::String(id), .. }) => id,
            _ => &named,
        };
        let (result, before, after) = match &done {
            Ok(_) => ("done".into(), before, on_record(id).await),
            Err(error) => (xxl_error::text(error), None, None),
        };
        let object = if id.is_empty() { String::new() } else { format!("job:{id}") };
        let entry = audit::entry("api", &who.name, from, format!("/api/{name}"), result);
        self.audit.record(AuditEntry { object, before, after, ..entry }).await;
        done
    }
}

async fn manage(jobs: &Jobs<'_>, name: &str, fields: &Fields) -> Result<Answer, RequestError> {
    if name == "addJob" {
        let job = jobs.add_form(&JobForm { started: false, ..JobForm::read(fields)? }).await?;
        return Ok(Answer::with(Value::String(job.to_string())));
    }
    let id =
        fields.number("id")?.map(JobId).ok_or_else(|| RequestError::invalid("id: enter the id of a job"))?;
    match name {
        // The call has no field for the group, so it cannot move a job.
        "updateJob" => jobs.update_form(id, &JobForm { group: None, ..JobForm::read(fields)? }).await?,
        "removeJob" => jobs.remove(id).await?,
        "startJob" => jobs.start_by_id(id).await?,
        "stopJob" => jobs.stop_by_id(id).await?,
        _ => {
            let text = |name: &str| fields.get(name).unwrap_or_default();
            jobs.trigger_by_id(id, text("executorParam"), text("addressList")).await?;
        }
    }
    Ok(Answer::ok())
}
