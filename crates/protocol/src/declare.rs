//! Declaration of handlers and jobs, sent by our executors to our scheduling centre when they start.
//!
//! `POST /api/declare`, with the conventions of XXL-JOB's calls: token and app in headers, an
//! [`Answer`](crate::xxl::Answer) as the response, here with a list of [`Settled`]. XXL-JOB's own admins respond
//! that the path is unknown; nothing else depends on the call.

use serde::{Deserialize, Serialize};

use crate::v1::{JobBody, Named, Retry, Route, Schedule};

/// Last path segment of the call.
pub const DECLARE: &str = "declare";

/// Maximum number of jobs in one call. Each may need a transaction, and the executor waits only a few seconds.
pub const JOBS_MAX: usize = 50;

/// Handlers and jobs of one executor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Declaration {
    /// Address of the executor, the same as in its registration.
    pub address: String,
    /// Names of all its handlers.
    #[serde(default)]
    pub handlers: Vec<String>,
    /// Jobs that call these handlers, at most [`JOBS_MAX`]; further jobs go into further calls.
    #[serde(default)]
    pub jobs: Vec<DeclaredJob>,
}

/// A job as declared by a program. An omitted field has its default, and a user may change it without it counting
/// as an override.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredJob {
    /// Handler that the job calls; also identifies the job within its app.
    pub handler: String,
    /// Schedule of the job.
    pub schedule: Schedule,
    /// Display name. Default: the name of the handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Parameter passed to the handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// Timeout of a run in milliseconds; a run that takes longer is stopped. Default: no timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Maximum number of retries of a failed run. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Routing strategy, for example `round_robin`; see [`JobBody::route`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Named<Route>>,
}

impl DeclaredJob {
    /// Converts it to the body that a user would send to `/v1/jobs`.
    pub fn body(&self, app: &str) -> JobBody {
        let name = self.name.as_ref().unwrap_or(&self.handler);
        let plain = JobBody::new(app, name, self.schedule.clone());
        JobBody {
            handler: self.handler.clone(),
            param: self.param.clone().unwrap_or_default(),
            timeout_ms: self.timeout_ms,
            retry: Retry { count: self.retries.unwrap_or(0), ..plain.retry },
            route: self.route.clone().unwrap_or(plain.route),
            ..plain
        }
    }
}

/// Result for one declared job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// Handler of the declared job.
    pub handler: String,
    /// Result of the declaration.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Fields of the [`JobBody`] that a user has changed since; they keep the user's values.
    #[serde(default)]
    pub overridden: Vec<String>,
}

/// Result of a declaration, tagged by `outcome`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The job was created and started.
    Created,
    /// The job was changed to match the declaration.
    Changed,
    /// The job already matched the declaration.
    Unchanged,
    /// The declaration was rejected; the job is not created or changed.
    Refused {
        /// Reason, and how to fix it.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_job_is_what_a_person_would_write() {
        let text = r#"{"handler":"sync","schedule":{"kind":"cron","expression":"0 * * * * ?"},"retries":2}"#;
        let job: DeclaredJob = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&job).unwrap().len(), text.len() + r#","dialect":"quartz""#.len());
        let body = job.body("orders");
        assert_eq!((body.name.as_str(), body.handler.as_str(), body.retry.count), ("sync", "sync", 2));
        assert_eq!((body.route.word(), body.enabled, body.timeout_ms), ("first", None, None));
        let misspelt = text.replace("retries", "retrys");
        assert!(serde_json::from_str::<DeclaredJob>(&misspelt).is_err());
    }

    #[test]
    fn what_came_of_it_is_one_flat_object() {
        let refused = Settled {
            handler: "sync".into(),
            outcome: Outcome::Refused { why: "no".into() },
            overridden: Vec::new(),
        };
        let text = serde_json::to_string(&refused).unwrap();
        assert_eq!(text, r#"{"handler":"sync","outcome":"refused","why":"no","overridden":[]}"#);
        assert_eq!(serde_json::from_str::<Settled>(&text).unwrap(), refused);
    }
}
