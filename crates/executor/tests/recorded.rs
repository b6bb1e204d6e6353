//! What an admin once said to a Java executor is said to ours, and ours answers and reports as that one did.
//!
//! `recorded.jsonl` of the crate `protocol` holds the exchanges; the handlers here do what those of that program did.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod kit;

use std::net::SocketAddr;
use std::time::Duration;

use kit::{Centre, Fault, TOKEN, builder, call, send};
use protocol::xxl::Lineage;
use serde_json::{Value, json};
use tickwright_executor::{Context, Job, Language, Scripts};

#[tokio::test]
async fn the_recorded_requests_get_the_recorded_answers_and_results() {
    let centre = Centre::start(Lineage::L23).await;
    let directory = tempfile::tempdir().unwrap();
    let executor = builder(&centre, directory.path())
        .jobs([
            Job::new("demoJobHandler", |ctx: Context| async move { ctx.log("a line") }),
            Job::new("failJobHandler", |_| async { Err::<(), _>("deliberate failure") }),
            Job::new("slowJobHandler", |ctx: Context| async move {
                ctx.log("slowly");
                tokio::time::sleep(Duration::from_secs(ctx.param().parse().unwrap())).await;
            }),
        ])
        .scripts(Scripts::of([Language::Shell]))
        .start()
        .await
        .unwrap();
    let stage = Stage { to: executor.local_address(), centre };
    let recorded = recorded();
    let mut later = None;
    for (place, exchange) in recorded.iter().enumerate() {
        match exchange.to.as_str() {
            "executor" => {
                stage.break_what_broke(exchange, &recorded[place..]);
                stage.repeat(exchange).await;
            }
            _ if exchange.path.ends_with("/callback") => {
                // The run that is stopped was heard of before the answer to the one that stops it.
                match exchange.body().to_string().contains("Cover Early") {
                    true => later = Some(exchange),
                    false => stage.expect_result(exchange).await,
                }
            }
            _ => {}
        }
        if exchange.to == "executor"
            && let Some(stopped) = later.take()
        {
            stage.expect_result(stopped).await;
        }
    }
    executor.stop(Duration::from_secs(10)).await;
    assert_eq!(stage.centre.removed(), stage.centre.registered()[..1]);
}

struct Stage {
    to: SocketAddr,
    centre: Centre,
}

impl Stage {
    /// Sends a request again and compares the answers.
    async fn repeat(&self, exchange: &Exchange) {
        let expected = exchange.answer();
        // The recording leaves out headers; which token was sent can be told from the answer.
        let token = if expected["msg"] == "The access token is wrong." { "other" } else { TOKEN };
        let Exchange { method, path, body, .. } = exchange;
        if path == "/log" && expected["content"]["logContent"] != "" && expected["content"]["isEnd"] == false
        {
            self.until_lines(body.as_deref().unwrap()).await;
        }
        let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nXXL-JOB-ACCESS-TOKEN: {token}\r\n");
        let (status, said) = send(self.to, &head, body.as_deref()).await;
        let said: Value = serde_json::from_str(&said).unwrap();
        let about = format!("{path} {body:?}: {said}");
        assert_eq!((status, &said["code"]), (exchange.status, &expected["code"]), "{about}");
        match path.as_str() {
            // Ours is also an executor for newer admins, which call so.
            "/trigger" => {}
            "/log" => compare_pages(&expected["content"], &said["content"]),
            // Where nothing is wrong, newer executors say so in a word, and ours does.
            _ if expected["msg"].is_null() => assert_eq!(said["msg"], "Success", "{about}"),
            _ => assert_eq!(said["msg"], expected["msg"], "{about}"),
        }
        if exchange.body()["executorBlockStrategy"] == "COVER_EARLY" {
            // What comes next finds this run at work.
            let run = exchange.body();
            let log = json!({"logId": run["logId"], "logDateTim": run["logDateTime"], "fromLineNum": 1});
            self.until_lines(&log.to_string()).await;
        }
    }

    /// The admin came when there was something to read; so does this one.
    async fn until_lines(&self, log: &str) {
        let written = async { while call(self.to, "/log", log).await["content"]["logContent"] == "" {} };
        tokio::time::timeout(Duration::from_secs(120), written).await.expect("it begins");
    }

    /// The admin did not take some results at first; so does this one.
    fn break_what_broke(&self, exchange: &Exchange, coming: &[Exchange]) {
        let run_id = &exchange.body()["logId"];
        let mut results = coming.iter().filter(|exchange| exchange.path.ends_with("/callback"));
        let Some(result) = results.find(|result| &result.body()[0]["logId"] == run_id) else { return };
        if exchange.path == "/run" && result.answer()["code"] == 500 {
            self.centre.plan([if result.status == 200 { Fault::Refuse } else { Fault::Status500 }]);
        }
    }

    /// The result of a run is the recorded one.
    async fn expect_result(&self, recorded: &Exchange) {
        for item in recorded.body().as_array().unwrap() {
            let message = item["handleMsg"].as_str().unwrap_or_default().to_owned();
            let code = item["handleCode"].as_i64().unwrap();
            assert_eq!(self.centre.result(item["logId"].as_i64().unwrap()).await, (code, message), "{item}");
        }
    }
}

/// What a page says, each executor says in words of its own; where it begins and whether more may come is the same.
fn compare_pages(expected: &Value, page: &Value) {
    assert_eq!(
        (&page["fromLineNum"], &page["isEnd"]),
        (&expected["fromLineNum"], &expected["isEnd"]),
        "{page}"
    );
    let is_empty = |page: &Value| page["logContent"] == "";
    let is_missing = |page: &Value| page["isEnd"] == true;
    assert_eq!(is_empty(page), is_empty(expected), "{page}");
    if is_missing(expected) {
        assert_eq!(page, expected);
    }
}

#[derive(serde::Deserialize)]
struct Exchange {
    client: String,
    to: String,
    method: String,
    path: String,
    body: Option<String>,
    status: u16,
    answer: Option<String>,
}

impl Exchange {
    fn body(&self) -> Value {
        self.body.as_deref().and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default()
    }

    fn answer(&self) -> Value {
        serde_json::from_str(self.answer.as_deref().unwrap()).unwrap()
    }
}

/// What was said to and by the Java executor, in order.
fn recorded() -> Vec<Exchange> {
    let lines = include_str!("../../protocol/tests/recorded.jsonl").lines();
    let exchanges = lines.map(|line| serde_json::from_str::<Exchange>(line).unwrap());
    exchanges.filter(|exchange| exchange.client.starts_with("java")).collect()
}
