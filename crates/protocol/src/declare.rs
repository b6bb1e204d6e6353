//! What our executors tell our centre at their start: which handlers they have, and which jobs are to call them.
//!
//! `POST /api/declare`, beside XXL-JOB's calls and as they are: the token and the app in headers, an
//! [`Answer`](crate::xxl::Answer) back, here with a list of [`Settled`]. XXL-JOB's own admins answer that they know no
//! such call, and nothing else depends on it.

use serde::{Deserialize, Serialize};

use crate::v1::{JobBody, Retry, Schedule};

/// The name of the call.
pub const DECLARE: &str = "declare";

/// Jobs in one call: each may take a transaction, and who calls waits for a few seconds only.
pub const JOBS_MAX: usize = 50;

/// What an executor says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Declaration {
    /// Where it listens, as it registers.
    pub address: String,
    /// All its handlers.
    #[serde(default)]
    pub handlers: Vec<String>,
    /// The jobs that are to call them, at most [`JOBS_MAX`]; more in further calls.
    #[serde(default)]
    pub jobs: Vec<DeclaredJob>,
}

/// A job as a program wants it. What is left out has its default, and people may change it without contradicting the
/// program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredJob {
    /// The handler it calls, and what it is known by within its app.
    pub handler: String,
    /// When it fires.
    pub schedule: Schedule,
    /// For people; the handler's name if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Given to the handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// A run that takes longer is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How often a failed run is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// How an executor is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
}

impl DeclaredJob {
    /// The same as a person would write it.
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

/// What came of a declared job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// Which: its handler.
    pub handler: String,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What people have changed since, and stays so: fields of a [`JobBody`].
    #[serde(default)]
    pub overridden: Vec<String>,
}

/// What came of a declared job, told apart by `outcome`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It is new, and started.
    Created,
    /// It is as the program says now.
    Changed,
    /// It was so before.
    Unchanged,
    /// It is not, and will not be while this stands.
    Refused {
        /// Why, and what to do.
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
        assert_eq!((body.route.as_str(), body.enabled, body.timeout_ms), ("FIRST", None, None));
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
