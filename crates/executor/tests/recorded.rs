//! Replays recorded requests of an admin to a Java executor; our executor answers and reports as the Java one did.
//!
//! `recorded.jsonl` of the crate `protocol` contains the exchanges; the handlers here do the same as those of the
//! Java program.
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
                // The result of the stopped run was reported before the response to the run that stops it.
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
    /// Repeats a request and compares the responses.
    async fn repeat(&self, exchange: &Exchange) {
        let expected = exchange.answer();
        // The recording has no headers; the token that was sent follows from the response.
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
            // Ours also supports newer admins, which use this path.
            "/trigger" => {}
            "/log" => compare_pages(&expected["content"], &said["content"]),
            // On success, newer executors and ours send a message.
            _ if expected["msg"].is_null() => assert_eq!(said["msg"], "Success", "{about}"),
            _ => assert_eq!(said["msg"], expected["msg"], "{about}"),
        }
        if exchange.body()["executorBlockStrategy"] == "COVER_EARLY" {
            // The next request has to find this run executing.
            let run = exchange.body();
            let log = json!({"logId": run["logId"], "logDateTim": run["logDateTime"], "fromLineNum": 1});
            self.until_lines(&log.to_string()).await;
        }
    }

    /// Waits for log lines, because the recorded admin asked when there were some.
    async fn until_lines(&self, log: &str) {
        let written = async { while call(self.to, "/log", log).await["content"]["logContent"] == "" {} };
        tokio::time::timeout(Duration::from_secs(120), written).await.expect("it begins");
    }

    /// Injects the faults of the recorded admin, which rejected some results at first.
    fn break_what_broke(&self, exchange: &Exchange, coming: &[Exchange]) {
        let run_id = &exchange.body()["logId"];
        let mut results = coming.iter().filter(|exchange| exchange.path.ends_with("/callback"));
        let Some(result) = results.find(|result| &result.body()[0]["logId"] == run_id) else { return };
        if exchange.path == "/run" && result.answer()["code"] == 500 {
            self.centre.plan([if result.status == 200 { Fault::Refuse } else { Fault::Status500 }]);
        }
    }

    /// Compares the result of a run with the recorded one.
    async fn expect_result(&self, recorded: &Exchange) {
        for item in recorded.body().as_array().unwrap() {
            let message = item["handleMsg"].as_str().unwrap_or_default().to_owned();
            let code = item["handleCode"].as_i64().unwrap();
            assert_eq!(self.centre.result(item["logId"].as_i64().unwrap()).await, (code, message), "{item}");
        }
    }
}

/// Compares start and end flag of log pages; the text differs between executors.
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

/// The exchanges of the Java executor, in order.
fn recorded() -> Vec<Exchange> {
    let lines = include_str!("../../protocol/tests/recorded.jsonl").lines();
    let exchanges = lines.map(|line| serde_json::from_str::<Exchange>(line).unwrap());
    exchanges.filter(|exchange| exchange.client.starts_with("java")).collect()
}
