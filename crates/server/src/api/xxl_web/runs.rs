//! `/joblog`: runs, their logs, cancelling and deleting them.

use engine::{JobId, Killed, RunId, RunState, Store as _};
use protocol::v1::ProblemCode;
use protocol::xxl::{CODE_OK, LogView, RunView};
use serde_json::{Value, json};
use store::{Clearing, Keep, Rights, RunFilter, RunRow, RunStatus};
use timer::Timestamp;

use super::time;
use super::{Reply, Visit, rows, value};
use crate::request_error::RequestError;
use crate::runs::{self, not_ended};

impl Visit<'_> {
    pub(super) async fn run_page(&self) -> Result<Reply, RequestError> {
        let (from, until) = self.filter_time()?;
        let filter = RunFilter {
            apps: self.seen_apps()?,
            job: self.named_job()?,
            status: match self.fields.trimmed("logStatus") {
                "1" => Some(RunStatus::Succeeded),
                "2" => Some(RunStatus::Failed),
                "3" => Some(RunStatus::Running),
                _ => None,
            },
            from,
            until,
        };
        let found = self.state.database.run_page(&filter, self.page()?).await?;
        let total = found.total.map_or(0, |total| total.count);
        Ok(Reply::Page(rows(found.rows.into_iter().map(|row| self.run_view(row))), total))
    }

    fn named_job(&self) -> Result<Option<JobId>, RequestError> {
        Ok(self.fields.number("jobId")?.filter(|job| *job > 0).map(JobId))
    }

    /// Parses a range such as `2026-06-21 00:00:00 - 2026-06-21 23:59:59`; the last second is included.
    fn filter_time(&self) -> Result<(Option<Timestamp>, Option<Timestamp>), RequestError> {
        let written = self.fields.trimmed("filterTime");
        if written.is_empty() {
            return Ok((None, None));
        }
        let read = |text: &str| time::read(text, &self.state.zone);
        let range = written.split_once(" - ").and_then(|(from, to)| Some((read(from)?, read(to)?)));
        let (from, to) = range.ok_or_else(|| {
            RequestError::invalid("filterTime: use the format `2026-06-21 00:00:00 - 2026-06-21 23:59:59`")
        })?;
        Ok((Some(from), Some(to + std::time::Duration::from_secs(1))))
    }

    async fn find_run(&self, id: i64, rights: Rights) -> Result<RunRow, RequestError> {
        let missing = RequestError::not_found(format!("run {id} does not exist"));
        match self.state.database.run(RunId(id)).await? {
            Some(run) if self.who.may(rights, run.app) => Ok(run),
            // A caller that probes ids gets the same error as for a missing run, and the attempt is recorded.
            Some(run) if !self.route.call.changes() => {
                self.put_on_record(format!("run:{}", run.id), missing.to_string()).await;
                Err(missing)
            }
            _ => Err(missing),
        }
    }

    /// A run's log from its executor, regardless of the address in the request; otherwise the stored part of it.
    pub(super) async fn run_log(&self) -> Result<Reply, RequestError> {
        let id = self
            .fields
            .number("logId")?
            .ok_or_else(|| RequestError::invalid("logId: enter the id of a run"))?;
        let run = self.find_run(id, Rights::VIEW).await?;
        let from = self.fields.number("fromLineNum")?.unwrap_or(1).clamp(1, i64::from(i32::MAX));
        let page = self.state.logs.page(&run, u32::try_from(from).unwrap_or(1)).await?;
        let number = |line: u32| i32::try_from(line).unwrap_or(i32::MAX);
        Ok(Reply::Done(value(LogView {
            from_line_num: number(page.from),
            to_line_num: number(page.to),
            log_content: escaped(&page.text),
            // Clients stop reading at `end`, so it is set on the empty page after the last lines.
            end: page.end && page.text.is_empty(),
        })))
    }

    pub(super) async fn kill_run(&self) -> Result<Reply, RequestError> {
        let run = self.find_run(self.id()?, Rights::OPERATE).await?;
        let reason = format!("cancelled by {}", self.who.name);
        let force = ["true", "1"].contains(&self.fields.trimmed("force"));
        match self.state.engine.kill(run.id, &reason, force).await? {
            Killed::Cancelled | Killed::Ending => Ok(Reply::Done(Value::Null)),
            Killed::Over => {
                Err(RequestError::new(ProblemCode::Conflict, format!("run {} has already finished", run.id)))
            }
            Killed::Open(answer) => Err(not_ended(&answer)),
        }
    }

    /// Deletes finished runs.
    pub(super) async fn clear_runs(&self) -> Result<Reply, RequestError> {
        let clearing =
            Clearing { apps: self.cleared_apps().await?, job: self.named_job()?, keep: self.kept()? };
        let runs::Cleared { deleted, more, failed } =
            runs::clear(&self.state.database, &clearing, CLEAR_ROUNDS).await?;
        let again = || {
            let why = format!("deleted {deleted} runs; there are more, repeat the request");
            RequestError::new(ProblemCode::Conflict, why)
        };
        let failed = failed
            .map(|error| RequestError::from(error).context(format!("deleted {deleted} runs, then failed")));
        let more = failed.or_else(|| more.then(again));
        Ok(Reply::Cleared { record: cleared_record(&clearing, deleted), more })
    }

    /// Apps to delete runs of: the named group, or all apps if an administrator names none.
    async fn cleared_apps(&self) -> Result<Option<Vec<engine::AppId>>, RequestError> {
        let group = self.fields.number("jobGroup")?.unwrap_or(0);
        let none = || RequestError::invalid("jobGroup: choose an existing executor group");
        if group <= 0 {
            return if self.who.is_admin() { Ok(None) } else { Err(none()) };
        }
        let app = engine::AppId(group);
        if !self.who.may(Rights::EDIT, app) || self.state.database.app(app).await?.is_none() {
            return Err(none());
        }
        // A job of another group gives the same error as a missing one.
        if let Some(job) = self.named_job()?
            && self.state.database.job(job).await?.is_none_or(|job| job.spec.app != app)
        {
            return Err(engine::StoreError::NoSuchJob(job).into());
        }
        Ok(Some(vec![app]))
    }

    fn kept(&self) -> Result<Keep, RequestError> {
        let months =
            |months| Keep::Since(time::months_before(self.state.engine.now(), months, &self.state.zone));
        Ok(match self.fields.number("type")? {
            Some(1) => months(1),
            Some(2) => months(3),
            Some(3) => months(6),
            Some(4) => months(12),
            Some(5) => Keep::Newest(1_000),
            Some(6) => Keep::Newest(10_000),
            Some(7) => Keep::Newest(30_000),
            Some(8) => Keep::Newest(100_000),
            Some(9) => Keep::Nothing,
            _ => return Err(RequestError::invalid("type: must be 1 (older than a month) to 9 (all)")),
        })
    }

    fn run_view(&self, run: RunRow) -> Value {
        let time = |at| self.dialect.time(at, &self.state.zone);
        // The log row is written when a run finishes. Until then its state shows whether an executor has accepted
        // it.
        let trigger_code = match run.state {
            RunState::Running => i64::from(CODE_OK),
            state if state.is_over() => run.trigger_code,
            _ => 0,
        };
        // Tools parse it, so it is never empty.
        let trigger_message = run.trigger_message.filter(|text| !text.is_empty()).unwrap_or_else(|| {
            let address = run.address.as_deref().unwrap_or_default();
            format!("address：{address}<br>code：{trigger_code}<br>msg：")
        });
        value(RunView {
            id: run.id.0,
            job_group: run.app.0,
            job_id: run.job.0,
            executor_address: run.address,
            executor_handler: run.handler,
            executor_param: workflow::secret::shown(&run.param).into_owned(),
            executor_sharding_param: run.shard,
            executor_fail_retry_count: run.retries_left,
            trigger_time: time(run.triggered_at),
            trigger_code,
            trigger_msg: Some(trigger_message),
            handle_time: time(run.ended_at),
            handle_code: run.result_code,
            handle_msg: run.result_message,
            alarm_status: run.alarm_status,
        })
    }
}

/// Audit record of a deletion: its filter and the number of deleted runs.
fn cleared_record(clearing: &Clearing, deleted: usize) -> Value {
    let kept = match clearing.keep {
        Keep::Since(at) => format!("since {at}"),
        Keep::Newest(count) => format!("newest {count}"),
        Keep::Nothing => "nothing".into(),
    };
    json!({ "job": clearing.job.map(|job| job.0), "kept": kept, "deleted": deleted })
}

/// Escapes a log for pages that insert it as HTML. The three tags that XXL-JOB allows are kept; without attributes
/// they are harmless.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    [("&lt;br&gt;", "<br>"), ("&lt;b&gt;", "<b>"), ("&lt;/b&gt;", "</b>")]
        .into_iter()
        .fold(safe, |safe, (escaped, tag)| safe.replace(escaped, tag))
}

/// Transactions per request, because the client waits.
const CLEAR_ROUNDS: usize = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_text_cannot_become_part_of_a_page() {
        assert_eq!(escaped("<br>a<b>b</b> & 'c'"), "<br>a<b>b</b> &amp; &#39;c&#39;");
        assert_eq!(escaped("<b onclick=x>"), "&lt;b onclick=x&gt;");
        assert_eq!(escaped("&lt;script>\"${7*7}"), "&amp;lt;script&gt;&quot;${7*7}");
    }
}
