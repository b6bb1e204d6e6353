//! Jobs in XXL-JOB's format: the form to edit one and the rows of its lists.

use serde::Serialize;

use super::Fields;
use super::fields::NotANumber;

/// Fields of XXL-JOB's job form, in its terms. An absent field is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobForm {
    /// Id of the group of executors; none if absent or 0.
    pub group: Option<i64>,
    /// Description of the job.
    pub name: String,
    /// Person responsible for the job.
    pub author: String,
    /// Mail addresses notified of failures.
    pub alarm_email: String,
    /// `NONE`, `CRON` or `FIX_RATE`.
    pub schedule_type: String,
    /// Cron expression, or interval in seconds.
    pub schedule_conf: String,
    /// `DO_NOTHING` or `FIRE_ONCE_NOW`; absent before 2.3, and optional in the newest API.
    pub misfire: Option<String>,
    /// Routing strategy.
    pub route: String,
    /// Name of the handler.
    pub handler: String,
    /// Parameter of the handler.
    pub param: String,
    /// Block strategy.
    pub block: String,
    /// Timeout in seconds; 0 for none.
    pub timeout: u32,
    /// Maximum number of retries.
    pub retries: u32,
    /// `BEAN`, or the language of a script.
    pub glue_type: String,
    /// Source code of the script.
    pub glue_source: String,
    /// Ids of child jobs, separated by commas; none if absent, as always in the newest API.
    pub children: Option<String>,
    /// Whether to start the job at once.
    pub started: bool,
}

impl JobForm {
    /// Parses the fields of any lineage.
    pub fn read(fields: &Fields) -> Result<JobForm, NotANumber> {
        let text = |name: &str| fields.get(name).unwrap_or_default().to_owned();
        let trimmed = |name: &str| fields.trimmed(name).to_owned();
        // Up to 2.2 cron was the only schedule, and there was no `scheduleType`.
        let cron = fields.get("jobCron").filter(|_| fields.get("scheduleType").is_none());
        let (schedule_type, schedule_conf) = match cron {
            Some(cron) => ("CRON".to_owned(), cron.trim().to_owned()),
            None => (trimmed("scheduleType"), trimmed("scheduleConf")),
        };
        let count = |name: &str| -> Result<u32, NotANumber> {
            let number = fields.number(name)?.unwrap_or(0).max(0);
            Ok(u32::try_from(number).unwrap_or(u32::MAX))
        };
        Ok(JobForm {
            group: fields.number("jobGroup")?.filter(|group| *group != 0),
            name: if fields.get("jobDesc").is_some() { trimmed("jobDesc") } else { trimmed("name") },
            author: trimmed("author"),
            alarm_email: trimmed("alarmEmail"),
            schedule_type,
            schedule_conf,
            misfire: fields.get("misfireStrategy").map(|word| word.trim().to_owned()),
            route: trimmed("executorRouteStrategy"),
            handler: trimmed("executorHandler"),
            param: text("executorParam"),
            block: trimmed("executorBlockStrategy"),
            timeout: count("executorTimeout")?,
            retries: count("executorFailRetryCount")?,
            glue_type: trimmed("glueType"),
            glue_source: text("glueSource"),
            children: fields.get("childJobId").map(|ids| ids.trim().to_owned()),
            started: fields.trimmed("triggerStatus") == "1",
        })
    }
}

/// A job in a list. `jobDesc` and `name` hold the same text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are XXL-JOB's own")]
pub struct JobView {
    pub id: i64,
    pub job_group: i64,
    pub job_desc: String,
    pub name: String,
    pub add_time: Option<String>,
    pub update_time: Option<String>,
    pub author: String,
    pub alarm_email: String,
    pub schedule_type: String,
    pub schedule_conf: String,
    pub misfire_strategy: String,
    pub executor_route_strategy: String,
    pub executor_handler: String,
    pub executor_param: String,
    pub executor_block_strategy: String,
    pub executor_timeout: u64,
    pub executor_fail_retry_count: u32,
    pub glue_type: String,
    pub glue_source: String,
    pub glue_remark: String,
    pub glue_updatetime: Option<String>,
    pub child_job_id: String,
    pub trigger_status: i32,
    pub trigger_last_time: i64,
    pub trigger_next_time: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(said: &[(&str, &str)]) -> Result<JobForm, NotANumber> {
        JobForm::read(&said.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
    }

    #[test]
    fn forms_of_every_lineage_are_read() {
        let oldest = read(&[("jobDesc", "nightly"), ("jobCron", "0 0 0 * * ?"), ("jobGroup", "3")]).unwrap();
        assert_eq!((oldest.name.as_str(), oldest.group), ("nightly", Some(3)));
        assert_eq!((oldest.schedule_type.as_str(), oldest.schedule_conf.as_str()), ("CRON", "0 0 0 * * ?"));
        let newest = read(&[("name", "nightly"), ("scheduleType", "FIX_RATE"), ("scheduleConf", "30")]);
        let newest = newest.unwrap();
        assert_eq!((newest.name.as_str(), newest.group, newest.children), ("nightly", None, None));
        assert_eq!((newest.schedule_type.as_str(), newest.schedule_conf.as_str()), ("FIX_RATE", "30"));
        let helpers = [("schedule_conf_CRON", "x"), ("triggerStatus", "1"), ("executorTimeout", "-5")];
        let form = read(&helpers).unwrap();
        assert_eq!((form.started, form.timeout), (true, 0));
    }

    #[test]
    fn what_should_be_a_number_and_is_not_is_named() {
        let error = read(&[("executorTimeout", "soon")]).unwrap_err();
        assert_eq!(error.to_string(), "executorTimeout: `soon` is not a whole number");
    }
}
