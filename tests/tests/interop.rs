//! Executors built on unchanged third-party client libraries go through all situations XXL-JOB's users know: they
//! register, run, fail, time out, are killed, restarted and stopped; and so is the centre. [`Client`] lists the
//! features of each client. Our own SDK goes through the same.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use executor::{Executor, Job, Language, Scripts};
use tickwright_tests::interop::{Client, JobForm, Killed, Program, Run, Stage, patiently};
use tickwright_tests::process::{Journal, JournalExecutor, free_address};
use tokio::net::TcpStream;

/// Skipped by this name if they are not installed.
mod clients_of_other_people {
    use super::*;

    #[tokio::test]
    async fn java_executors_are_served() {
        play(Client::JAVA).await;
    }

    #[tokio::test]
    async fn python_executors_are_served() {
        play(Client::PYTHON).await;
    }

    #[tokio::test]
    async fn node_executors_are_served() {
        play(Client::NODE).await;
    }

    #[tokio::test]
    async fn rust_executors_are_served() {
        play(Client::RUST).await;
    }

    #[tokio::test]
    async fn a_tool_manages_jobs_through_the_web_api() {
        let told = async {
            let stage = Stage::open("admin-sh").await?;
            let (app, token) = stage.app();
            let executor = JournalExecutor::start(app, token, &[stage.address()], Journal::default()).await?;
            executor.register().await?;
            let mut tool = stage.program("admin-sh", 0)?;
            let status = tool.ended().await?;
            ensure!(status.success(), "it ended with {status}; it said:\n{}", tool.said());
            stage.close().await
        };
        told.await.unwrap_or_else(|error: anyhow::Error| panic!("{error:#}"));
    }
}

#[tokio::test]
async fn our_own_executors_are_served() {
    play(Client::OWN).await;
}

/// The executor that the test above starts. Does nothing when run as a test.
#[test]
fn the_executor_of_our_own() {
    let variables = ["CENTRE", "APP", "TOKEN", "PORT"].map(|name| std::env::var(format!("INTEROP_{name}")));
    let [Ok(centre), Ok(app), Ok(token), Ok(port)] = variables else { return };
    let ok = Job::new("ok", |ctx: executor::Context| async move {
        (1..=3).for_each(|line| ctx.log(format!("ok line {line}")));
        ctx.log(format!("ok with {}", ctx.param()));
    });
    let fail = Job::new("fail", |_| async { Err::<(), _>("deliberate failure") });
    let slow = Job::new("slow", |ctx: executor::Context| async move {
        let mut ending = Ending("slow was interrupted");
        for second in 1..=ctx.param().parse().expect("seconds") {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let second: u64 = second;
            ctx.log(format!("slow second {second}"));
        }
        ending.0 = "slow is done";
    });
    let shard =
        Job::new("shard", |ctx: executor::Context| async move { ctx.log(format!("shard {}", ctx.shard())) });
    let builder = Executor::builder(app).centre(centre).token(token).listen(format!("127.0.0.1:{port}"));
    let builder = builder.jobs([ok, fail, slow, shard]).scripts(Scripts::of([Language::Shell]));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(builder.run()).unwrap();
}

/// Prints how a handler ended, also when it is dropped halfway.
struct Ending(&'static str);

impl Drop for Ending {
    fn drop(&mut self) {
        println!("{}", self.0);
    }
}

async fn play(client: Client) {
    let mut scenario =
        Scenario::begin(client).await.unwrap_or_else(|error| panic!("{}: {error:#}", client.name));
    if let Err(error) = scenario.run().await {
        let (executor, centre) = (scenario.executor.said(), scenario.stage.said());
        panic!(
            "{}: {error:#}\n── the executor said ──\n{executor}\n── the centre said ──\n{centre}",
            client.name
        );
    }
    scenario.stage.close().await.unwrap_or_else(|error| panic!("{}: {error:#}", client.name));
}

/// One client, its executor, and a centre.
struct Scenario {
    client: Client,
    stage: Stage,
    executor: Program,
    port: u16,
}

impl Scenario {
    async fn begin(client: Client) -> Result<Scenario> {
        let stage = Stage::open(client.name).await?;
        let port = free_address()?.port();
        let executor = stage.program(client.name, port)?;
        Ok(Scenario { client, stage, executor, port })
    }

    async fn run(&mut self) -> Result<()> {
        self.stage.has_registered(1).await.context("it registers")?;
        self.succeeds().await.context("a run succeeds")?;
        self.fails().await.context("a run fails")?;
        self.fires().await.context("a job fires by itself")?;
        if self.client.runs_scripts {
            self.runs_scripts().await.context("scripts run")?;
        }
        self.takes_too_long().await.context("a run takes too long")?;
        self.is_watched_and_killed().await.context("a run is watched and killed")?;
        let orphan = self.executor_restarts().await.context("the executor is restarted")?;
        self.centre_restarts().await.context("the centre is restarted")?;
        let second = self.shares().await.context("two share a broadcast")?;
        self.are_asked_first().await.context("executors are asked whether they can take a run")?;
        self.is_found_lost(orphan).await.context("a run is lost with its executor")?;
        self.stops(second).await.context("the executors stop")
    }

    fn job<'a>(&self, handler: &'a str) -> JobForm<'a> {
        JobForm::of(self.stage.group, handler)
    }

    async fn succeeds(&self) -> Result<()> {
        let run = self.stage.script.run(&self.job("ok"), "wrenches & 螺丝刀").await?;
        ensure!((run.sent, run.code) == (200, 200), "{run:?}");
        for line in ["ok line 1", "ok line 2", "ok line 3"] {
            self.logs(&run, line, line).await?;
        }
        self.logs(&run, "ok with wrenches &amp; 螺丝刀", "ok with wrenches & 螺丝刀").await
    }

    /// Checks that a line is in the log shown by the centre or, if the client shows none, in the executor's output.
    async fn logs(&self, run: &Run, shown: &str, said: &str) -> Result<()> {
        if !self.client.shows_logs {
            return self.executor.says(said, 1).await;
        }
        let whole = async || self.whole_log(run.id).await.ok().filter(|text| text.contains(shown));
        patiently(&format!("`{shown}` is in the log"), whole).await.map(drop)
    }

    /// Reads a complete log page by page.
    async fn whole_log(&self, run: i64) -> Result<String> {
        let (mut text, mut from) = (String::new(), 1);
        let whole = patiently("the log ends", async || {
            let log = self.stage.script.log(run, from).await.ok()?;
            text.push_str(&log.text);
            from = log.next;
            log.end.then_some(())
        });
        whole.await?;
        Ok(text)
    }

    async fn fails(&self) -> Result<()> {
        let run = self.stage.script.run(&self.job("fail"), "").await?;
        ensure!((run.sent, run.code) == (200, 500), "{run:?}");
        ensure!(run.message.contains("deliberate failure"), "{run:?}");
        Ok(())
    }

    async fn fires(&self) -> Result<()> {
        let script = &self.stage.script;
        let job = script.add_job(&JobForm { each_seconds: Some(1), ..self.job("ok") }).await?;
        script.start(job).await?;
        patiently("it has fired twice, with success", async || {
            let runs = script.runs(job).await.ok()?;
            (runs.iter().filter(|run| run.code == 200).count() >= 2).then_some(())
        })
        .await?;
        script.stop(job).await?;
        script.ended(job).await.map(drop)
    }

    async fn runs_scripts(&self) -> Result<()> {
        let script = &self.stage.script;
        let shell = JobForm { script: Some(("GLUE_SHELL", "echo \"shell has $1\"\n")), ..self.job("") };
        let job = script.add_job(&shell).await?;
        script.trigger(job, "wrenches").await?;
        let run = script.ended(job).await?;
        ensure!(run.code == 200, "{run:?}");
        self.logs(&run, "shell has wrenches", "").await?;

        script.save_script(job, "echo another\nexit 3\n").await?;
        script.trigger(job, "").await?;
        let run = script.ended(job).await?;
        ensure!(run.code == 500 && run.message.contains('3'), "{run:?}");
        self.logs(&run, "another", "").await?;

        if !self.client.runs_groovy {
            return Ok(());
        }
        let groovy = JobForm { script: Some(("GLUE_GROOVY", GROOVY)), ..self.job("") };
        let run = script.run(&groovy, "wrenches").await?;
        ensure!(run.code == 200, "{run:?}");
        self.logs(&run, "groovy has wrenches", "").await
    }

    async fn takes_too_long(&self) -> Result<()> {
        let run = self.stage.script.run(&JobForm { timeout: 1, ..self.job("slow") }, "300").await?;
        let code = self.client.ends_late_runs_with.unwrap_or(ENDED_BY_THE_CENTRE);
        ensure!((run.sent, run.code) == (200, code), "{run:?}");
        if self.client.obeys_kills {
            self.executor.says("slow was interrupted", 1).await?;
        }
        Ok(())
    }

    async fn is_watched_and_killed(&self) -> Result<()> {
        let script = &self.stage.script;
        let job = script.add_job(&self.job("slow")).await?;
        script.trigger(job, "300").await?;
        let run = script.taken(job).await?;
        if self.client.shows_logs {
            self.grows(run.id).await?;
        }
        let answer = script.kill(run.id, false).await?;
        match &answer {
            Killed::Cancelled => {}
            Killed::Refused(why) => {
                ensure!(!self.client.obeys_kills, "{why}");
                ensure!(script.kill(run.id, true).await? == Killed::Cancelled, "a person insists");
            }
            Killed::Finished => ensure!(self.client.succeeds_when_killed, "it finished before it was killed"),
        }
        let killed = script.ended(job).await?;
        // From its response or its report, whichever came first.
        let (code, by_whom): (i64, &[&str]) = match answer {
            Killed::Finished => (200, &["is killed"]),
            _ => (500, &["cancelled by admin", "cancelled on request"]),
        };
        ensure!(
            killed.code == code && by_whom.iter().any(|text| killed.message.contains(text)),
            "{killed:?}"
        );
        if self.client.obeys_kills {
            self.executor.says("slow was interrupted", 2).await?;
        }
        // A later report of the executor changes nothing.
        let next = script.run(&self.job("ok"), "").await?;
        ensure!(next.code == 200, "{next:?}");
        let still = script.ended(job).await?;
        ensure!(still.message == killed.message, "{still:?}");
        Ok(())
    }

    /// The log of a running run gets a line, then more, and has no end.
    async fn grows(&self, run: i64) -> Result<()> {
        let (mut text, mut from) = (String::new(), 1);
        for second in ["slow second 1", "slow second 2"] {
            // On a busy machine both lines may appear at once.
            patiently(&format!("`{second}` is in the log"), async || {
                let log = self.stage.script.log(run, from).await.ok()?;
                text.push_str(&log.text);
                from = log.next;
                (text.contains(second) && !log.end).then_some(())
            })
            .await?;
        }
        Ok(())
    }

    /// The executor dies during a run and restarts at the same address. Returns the run.
    async fn executor_restarts(&mut self) -> Result<(i64, i64)> {
        let script = &self.stage.script;
        let orphaned = script.add_job(&self.job("slow")).await?;
        script.trigger(orphaned, "300").await?;
        let orphan = script.taken(orphaned).await?;

        self.executor.kill().await?;
        self.executor = self.stage.program(self.client.name, self.port)?;
        let listens = async || TcpStream::connect(("127.0.0.1", self.port)).await.ok();
        patiently("it listens again", listens).await?;
        let run = script.run(&self.job("ok"), "").await?;
        ensure!(run.code == 200, "{run:?}");
        Ok((orphaned, orphan.id))
    }

    /// The centre dies during a run and restarts; the result arrives.
    async fn centre_restarts(&mut self) -> Result<()> {
        let job = self.stage.script.add_job(&self.job("slow")).await?;
        self.stage.script.trigger(job, "3").await?;
        self.stage.script.taken(job).await?;
        if self.client.keeps_results {
            self.stage.kill_centre().await?;
            self.executor.says("slow is done", 1).await?;
            self.stage.start_centre().await?;
        } else {
            // The run must not end while the centre is down, however long that takes.
            self.executor.pause().await?;
            self.stage.kill_centre().await?;
            self.stage.start_centre().await?;
            self.executor.resume().await?;
        }
        let run = self.stage.script.ended(job).await?;
        ensure!((run.sent, run.code) == (200, 200), "{run:?}");
        Ok(())
    }

    /// A broadcast goes to both of two executors. Returns the second.
    async fn shares(&self) -> Result<Program> {
        let second = self.stage.program(self.client.name, free_address()?.port())?;
        self.stage.has_registered(2).await?;
        let script = &self.stage.script;
        let job = script.add_job(&JobForm { route: "SHARDING_BROADCAST", ..self.job("shard") }).await?;
        script.trigger(job, "").await?;
        let mut runs = patiently("both shards are over", async || {
            let runs = script.runs(job).await.ok()?;
            (runs.len() == 2 && runs.iter().all(Run::is_over)).then_some(runs)
        })
        .await?;
        runs.sort_by(|one, other| one.shard.cmp(&other.shard));
        for (run, shard) in runs.iter().zip(["0/2", "1/2"]) {
            ensure!((run.code, run.shard.as_str()) == (200, shard), "{run:?}");
            if self.client.shows_logs {
                self.logs(run, &format!("shard {shard}"), "").await?;
            }
        }
        Ok(second)
    }

    /// Two routing strategies query executors before choosing one: whether they are alive, and whether they are idle.
    async fn are_asked_first(&self) -> Result<()> {
        for route in ["FAILOVER", "BUSYOVER"] {
            let run = self.stage.script.run(&JobForm { route, ..self.job("ok") }, "").await?;
            ensure!(run.code == 200, "{route}: {run:?}");
        }
        Ok(())
    }

    async fn is_found_lost(&self, (job, run): (i64, i64)) -> Result<()> {
        let run = self.stage.script.ended_within(LOST_MAX, job, run).await?;
        ensure!(run.code == 500, "{run:?}");
        Ok(())
    }

    async fn stops(&mut self, mut second: Program) -> Result<()> {
        self.executor.stop().await?;
        second.stop().await?;
        if self.client.says_goodbye {
            self.stage.has_registered(0).await?;
        }
        // Registered or not, no executor is available, and the row of the run records it.
        let run = self.stage.script.run(&self.job("ok"), "").await?;
        ensure!(run.sent == 500 && !run.sent_message.is_empty(), "{run:?}");
        Ok(())
    }
}

/// XXL-JOB's code for a run that timed out.
const ENDED_BY_THE_CENTRE: i64 = 502;

/// The centre asks after 30 s and then tolerates a minute without a response or result.
const LOST_MAX: Duration = Duration::from_secs(120);

const GROOVY: &str = r#"
import com.xxl.job.core.context.XxlJobHelper
import com.xxl.job.core.handler.IJobHandler

class Groovy extends IJobHandler {
    void execute() { XxlJobHelper.log("groovy has " + XxlJobHelper.getJobParam()) }
}
"#;
