//! An executor of the sample app with answers chosen by the test.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::Uri;
use axum::routing::post;
use engine::RunId;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::kit::{Bench, until};

/// A registered executor that accepts runs.
pub struct Fake {
    pub address: String,
    script: Arc<Script>,
    serving: JoinHandle<()>,
}

/// The answer to a request; `None` leaves the caller without one.
type Answer = Arc<dyn Fn(&Value) -> Option<Value> + Send + Sync>;

#[derive(Default)]
struct Script {
    answers: Mutex<HashMap<&'static str, Answer>>,
    calls: Mutex<Vec<(String, Value)>>,
    is_dead: AtomicBool,
}

impl Fake {
    pub async fn start(bench: &Bench) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let script = Arc::new(Script::default());
        let router = Router::new().route("/{call}", post(serve)).with_state(script.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let registration =
            json!({ "registryGroup": "EXECUTOR", "registryKey": bench.app, "registryValue": address });
        bench.post("/api/registry", Some(&bench.token), &registration.to_string()).await;
        until("the executor is registered", async || bench.sees(&address).then_some(())).await;
        Fake { address, script, serving }
    }

    /// Sets the answer for this path from now on.
    pub fn answers(
        &self,
        path: &'static str,
        answer: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static,
    ) {
        self.script.answers.lock().unwrap().insert(path, Arc::new(answer));
    }

    /// Returns how often this path was called.
    pub fn calls(&self, path: &str) -> usize {
        self.script.calls.lock().unwrap().iter().filter(|(called, _)| called == path).count()
    }

    /// Reports a result.
    pub async fn reports(&self, bench: &Bench, run: RunId, code: i64, text: &str) {
        let item = json!([{ "logId": run.0, "logDateTim": 0, "handleCode": code, "handleMsg": text }]);
        let answer = bench.post("/api/callback", Some(&bench.token), &item.to_string()).await;
        assert!(answer.contains(r#""code":200"#), "{answer}");
    }

    /// Unregisters the executor.
    pub async fn leaves(self, bench: &Bench) {
        let registration =
            json!({ "registryGroup": "EXECUTOR", "registryKey": bench.app, "registryValue": self.address });
        bench.post("/api/registryRemove", Some(&bench.token), &registration.to_string()).await;
        until("the executor is gone", async || (!bench.sees(&self.address)).then_some(())).await;
    }

    /// Kills the executor: new connections are refused, and open ones get no answer.
    pub async fn dies(self) {
        self.script.is_dead.store(true, Ordering::SeqCst);
        self.serving.abort();
        let _ = self.serving.await;
    }
}

/// A page of a log in the format of executors.
pub fn log_page(from: u64, to: u64, text: &str, end: bool) -> Value {
    json!({ "code": 200, "content": { "fromLineNum": from, "toLineNum": to, "logContent": text, "isEnd": end } })
}

async fn serve(State(script): State<Arc<Script>>, uri: Uri, body: String) -> String {
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let path = uri.path().to_owned();
    script.calls.lock().unwrap().push((path.clone(), body.clone()));
    let answer = script.answers.lock().unwrap().get(path.as_str()).cloned();
    let answer = match (answer, path.as_str()) {
        (Some(answer), _) => answer(&body),
        // It claims to have a run of every job.
        (None, "/idleBeat") => {
            Some(json!({ "code": 500, "msg": "job thread is running or has trigger queue." }))
        }
        (None, "/log") => Some(log_page(1, 0, "", false)),
        (None, _) => Some(json!({ "code": 200 })),
    };
    match answer.filter(|_| !script.is_dead.load(Ordering::SeqCst)) {
        Some(answer) => answer.to_string(),
        None => std::future::pending().await,
    }
}
