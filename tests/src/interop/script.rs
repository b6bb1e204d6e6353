//! XXL-JOB's web API as used by a script for 2.x: signs in and posts forms.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use form_urlencoded::Serializer;
use serde_json::Value;
use tokio::net::TcpStream;

use super::{patiently, within};
use crate::process::http::{Message, Wire};

/// A script that has signed in.
pub struct Script {
    centre: SocketAddr,
    cookie: String,
}

/// Answer to a request to kill a run.
#[derive(Debug, PartialEq, Eq)]
pub enum Killed {
    /// The run is cancelled.
    Cancelled,
    /// The executor has not stopped it, for this reason.
    Refused(String),
    /// The run had finished, or its executor reported its result first.
    Finished,
}

/// Fields of a new job. The others have the defaults of XXL-JOB's page.
pub struct JobForm<'a> {
    /// Id of the group.
    pub group: i64,
    /// Name of the handler.
    pub handler: &'a str,
    /// Interval in seconds; `None` if the job is only triggered manually.
    pub each_seconds: Option<u32>,
    /// Routing strategy, for example `ROUND`.
    pub route: &'a str,
    /// Timeout in seconds.
    pub timeout: u32,
    /// Type and source of a script.
    pub script: Option<(&'a str, &'a str)>,
}

impl<'a> JobForm<'a> {
    /// A job for a handler, triggered manually.
    pub fn of(group: i64, handler: &'a str) -> JobForm<'a> {
        JobForm { group, handler, each_seconds: None, route: "FIRST", timeout: 0, script: None }
    }
}

/// A row of the log.
#[derive(Debug)]
pub struct Run {
    /// Id of the run.
    pub id: i64,
    /// Trigger code: 0 is not sent yet, 200 is success.
    pub sent: i64,
    /// Message of the trigger.
    pub sent_message: String,
    /// Result code: 0 is not finished yet, 200 is success.
    pub code: i64,
    /// Message of the result.
    pub message: String,
    /// Index and total of the shard.
    pub shard: String,
}

impl Run {
    fn read(row: &Value) -> Run {
        let number = |name: &str| row[name].as_i64().unwrap_or_default();
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        Run {
            id: number("id"),
            sent: number("triggerCode"),
            sent_message: text("triggerMsg"),
            code: number("handleCode"),
            message: text("handleMsg"),
            shard: text("executorShardingParam"),
        }
    }

    /// Whether it has a result or was never accepted.
    pub fn is_over(&self) -> bool {
        self.code != 0 || !matches!(self.sent, 0 | 200)
    }
}

/// A page of a run's log.
#[derive(Debug)]
pub struct Log {
    /// Lines as shown on a page.
    pub text: String,
    /// Number of the next line.
    pub next: i64,
    /// Whether there are no more lines.
    pub end: bool,
}

impl Script {
    /// Signs in.
    pub async fn sign_in(centre: SocketAddr, user: &str, password: &str) -> Result<Script> {
        let mut script = Script { centre, cookie: String::new() };
        let answer = script.post("/login", &[("userName", user), ("password", password)]).await?;
        let cookie = answer.header("set-cookie").and_then(|cookie| cookie.split(';').next());
        script.cookie = cookie.with_context(|| said("/login", &answer))?.to_owned();
        Ok(script)
    }

    /// Adds a group of executors with its token; returns its id.
    pub async fn add_group(&self, app: &str, token: &str) -> Result<i64> {
        self.done("/jobgroup/save", &[("appname", app), ("title", app), ("accessToken", token)]).await?;
        let groups = self.page("/jobgroup/pageList", &[("appname", app)]).await?;
        groups.first().and_then(|group| group["id"].as_i64()).context("the new group is in the list")
    }

    /// Addresses of the executors registered in a group.
    pub async fn registered(&self, group: i64) -> Result<Vec<String>> {
        let group = self.done("/jobgroup/loadById", &[("id", &group.to_string())]).await?;
        let addresses = group["registryList"].as_array().context("a list of addresses")?;
        Ok(addresses.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// Adds a stopped job; returns its id.
    pub async fn add_job(&self, job: &JobForm<'_>) -> Result<i64> {
        let (group, timeout) = (job.group.to_string(), job.timeout.to_string());
        let (kind, source) = job.script.unwrap_or(("BEAN", ""));
        let rate = job.each_seconds.map(|seconds| seconds.to_string());
        let id = self
            .done(
                "/jobinfo/add",
                &[
                    ("jobGroup", &group),
                    ("jobDesc", "interop"),
                    ("author", "ann"),
                    ("scheduleType", if rate.is_some() { "FIX_RATE" } else { "NONE" }),
                    ("scheduleConf", rate.as_deref().unwrap_or_default()),
                    ("misfireStrategy", "DO_NOTHING"),
                    ("executorRouteStrategy", job.route),
                    ("executorHandler", job.handler),
                    ("executorBlockStrategy", "SERIAL_EXECUTION"),
                    ("executorTimeout", &timeout),
                    ("executorFailRetryCount", "0"),
                    ("glueType", kind),
                    ("glueSource", source),
                    ("glueRemark", "interop"),
                ],
            )
            .await?;
        id.as_str().and_then(|id| id.parse().ok()).with_context(|| format!("an id, not {id}"))
    }

    /// Replaces the script of a job.
    pub async fn save_script(&self, job: i64, source: &str) -> Result<()> {
        let form = [("id", job.to_string()), ("glueSource", source.into()), ("glueRemark", "another".into())];
        self.done("/jobcode/save", &form.each_ref().map(|(name, value)| (*name, value.as_str()))).await?;
        Ok(())
    }

    /// Starts a job.
    pub async fn start(&self, job: i64) -> Result<()> {
        self.done("/jobinfo/start", &[("id", &job.to_string())]).await.map(drop)
    }

    /// Stops a job.
    pub async fn stop(&self, job: i64) -> Result<()> {
        self.done("/jobinfo/stop", &[("id", &job.to_string())]).await.map(drop)
    }

    /// Triggers a job once.
    pub async fn trigger(&self, job: i64, param: &str) -> Result<()> {
        let form = [("id", job.to_string()), ("executorParam", param.into()), ("addressList", String::new())];
        self.done("/jobinfo/trigger", &form.each_ref().map(|(name, value)| (*name, value.as_str()))).await?;
        Ok(())
    }

    /// Creates a job, triggers it once, and waits for the end of the run.
    pub async fn run(&self, job: &JobForm<'_>, param: &str) -> Result<Run> {
        let job = self.add_job(job).await?;
        self.trigger(job, param).await?;
        self.ended(job).await
    }

    /// The runs of a job, newest first.
    pub async fn runs(&self, job: i64) -> Result<Vec<Run>> {
        let job = job.to_string();
        let rows =
            self.page("/joblog/pageList", &[("jobGroup", "0"), ("jobId", &job), ("logStatus", "-1")]).await?;
        Ok(rows.iter().map(Run::read).collect())
    }

    /// Waits until the newest run of a job is accepted by an executor.
    pub async fn taken(&self, job: i64) -> Result<Run> {
        let newest = async || self.runs(job).await.ok()?.into_iter().next().filter(|run| run.sent != 0);
        let run = patiently("the run is sent", newest).await?;
        ensure!(run.sent == 200, "it was not taken: {run:?}");
        Ok(run)
    }

    /// Waits until the newest run of a job is finished.
    pub async fn ended(&self, job: i64) -> Result<Run> {
        let newest = async || self.runs(job).await.ok()?.into_iter().next().filter(Run::is_over);
        patiently("the run is over", newest).await
    }

    /// The same for one run, with an explicit limit.
    pub async fn ended_within(&self, limit: std::time::Duration, job: i64, run: i64) -> Result<Run> {
        let wanted =
            async || self.runs(job).await.ok()?.into_iter().find(|row| row.id == run && row.is_over());
        within(limit, "the run is over", wanted).await
    }

    /// The log of a run from this line on.
    pub async fn log(&self, run: i64, from: i64) -> Result<Log> {
        let (run, line) = (run.to_string(), from.to_string());
        let log = self.done("/joblog/logDetailCat", &[("logId", &run), ("fromLineNum", &line)]).await?;
        Ok(Log {
            text: log["logContent"].as_str().context("a text")?.to_owned(),
            next: log["toLineNum"].as_i64().context("a line")? + 1,
            end: log["end"].as_bool().context("whether it is the end")?,
        })
    }

    /// Kills a run.
    pub async fn kill(&self, run: i64, force: bool) -> Result<Killed> {
        let form = [("id", run.to_string()), ("force", force.to_string())];
        let answer =
            self.post("/joblog/logKill", &form.each_ref().map(|(name, text)| (*name, text.as_str()))).await?;
        let body: Value =
            serde_json::from_slice(&answer.body).with_context(|| said("/joblog/logKill", &answer))?;
        let why = body["msg"].as_str().unwrap_or_default();
        match body["code"] == 200 {
            true => Ok(Killed::Cancelled),
            false if why.starts_with("cancellation requested") => Ok(Killed::Refused(why.to_owned())),
            false if why.ends_with("has already finished") => Ok(Killed::Finished),
            false => anyhow::bail!(said("/joblog/logKill", &answer)),
        }
    }

    async fn page(&self, path: &str, form: &[(&str, &str)]) -> Result<Vec<Value>> {
        let paging = [("start", "0"), ("length", "50")];
        let answer = self.post(path, &[form, &paging].concat()).await?;
        let mut page: Value = serde_json::from_slice(&answer.body).with_context(|| said(path, &answer))?;
        match page["data"].take() {
            Value::Array(rows) => Ok(rows),
            _ => anyhow::bail!(said(path, &answer)),
        }
    }

    async fn done(&self, path: &str, form: &[(&str, &str)]) -> Result<Value> {
        let answer = self.post(path, form).await?;
        let mut body: Value = serde_json::from_slice(&answer.body).with_context(|| said(path, &answer))?;
        ensure!(body["code"] == 200, said(path, &answer));
        Ok(body["content"].take())
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Result<Message> {
        let form = Serializer::new(String::new()).extend_pairs(form).finish();
        let mut wire = Wire::new(TcpStream::connect(self.centre).await?);
        Ok(wire.post_form(&format!("/xxl-job-admin{path}"), &self.cookie, &form).await?)
    }
}

fn said(path: &str, answer: &Message) -> String {
    format!("{path} answered {}: {}", answer.status(), String::from_utf8_lossy(&answer.body))
}
