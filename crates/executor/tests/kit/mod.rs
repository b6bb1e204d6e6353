//! A fake scheduling centre for tests, which behaves like each lineage of XXL-JOB, and a simple HTTP client.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use protocol::xxl::{CallbackItem, CallbackShape, Lineage, Registry, read_callbacks};
use serde_json::{Value, json};
use tickwright_executor::{Builder, Executor};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

pub const TOKEN: &str = "p2Vq0mXo5tYb";

/// A fake centre of one lineage.
#[derive(Clone)]
pub struct Centre {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    lineage: Lineage,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    registered: Vec<String>,
    removed: Vec<String>,
    results: Vec<CallbackItem>,
    /// App and run id of every received result.
    senders: Vec<(String, i64)>,
    /// Runs with a result that was stored and confirmed to the executor.
    confirmed: BTreeSet<i64>,
    /// Apps that did not receive the confirmation of their results.
    kept_waiting: Vec<String>,
    refused: usize,
    faults: Vec<Fault>,
    /// Received declarations, in order.
    declared: Vec<Value>,
    /// Responses to future declarations, the last first. If empty, the call does not exist, as in XXL-JOB.
    settled: Vec<Value>,
    /// Registrations get an HTTP 500.
    is_ill: bool,
    /// Any token is accepted.
    is_open: bool,
}

/// Fault injected instead of the next response to a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Code 500, not stored.
    Refuse,
    /// Code 503, not stored: the database is unavailable.
    SendAgain,
    /// HTTP 500, not stored.
    Status500,
    /// Stored, and the response is lost.
    LoseAnswer,
    /// Stored, and never answered.
    Hang,
}

impl Centre {
    pub async fn start(lineage: Lineage) -> Centre {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared { lineage, state: Mutex::default(), changed: Notify::new() });
        let centre = Centre { address, shared };
        tokio::spawn(centre.clone().serve(listener));
        centre
    }

    async fn serve(self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            let centre = self.clone();
            let service = service_fn(move |request| {
                let centre = centre.clone();
                async move { Ok::<_, Infallible>(centre.answer(request).await) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    }

    /// The address in the form of the lineage.
    pub fn url(&self) -> String {
        match self.shared.lineage {
            Lineage::Next => format!("http://{}", self.address),
            _ => format!("http://{}/xxl-job-admin", self.address),
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let call = head.uri.path().rsplit('/').next().unwrap_or_default();
        let token = head.headers.get("XXL-JOB-ACCESS-TOKEN").and_then(|value| value.to_str().ok());
        let app = head.headers.get("XXL-JOB-APPNAME").and_then(|value| value.to_str().ok());
        let answer = if token != Some(TOKEN) && !self.state().is_open {
            self.fail("The access token is wrong.")
        } else if self.shared.lineage == Lineage::Next && app != Some("app") {
            self.fail("invalid request, accessToken or appname invalid.")
        } else {
            match call {
                "registry" if self.state().is_ill => return status(StatusCode::INTERNAL_SERVER_ERROR),
                "registry" | "registryRemove" => self.register(call, &body),
                "declare" => self.settle(&body),
                "callback" => match self.next_fault() {
                    Some(Fault::Status500) => return status(StatusCode::INTERNAL_SERVER_ERROR),
                    Some(Fault::Refuse) => self.fail("boom"),
                    Some(Fault::SendAgain) => json!({"code": 503, "msg": "send it again"}),
                    Some(fault @ (Fault::LoseAnswer | Fault::Hang)) => {
                        self.take(&body, app);
                        self.state().kept_waiting.extend(app.map(str::to_owned));
                        self.shared.changed.notify_waiters();
                        if fault == Fault::Hang {
                            pending::<()>().await;
                        }
                        return status(StatusCode::BAD_GATEWAY);
                    }
                    None => {
                        let answer = self.take(&body, app);
                        self.confirm(&body, &answer);
                        answer
                    }
                },
                _ => self.fail("invalid request, uri-mapping not found."),
            }
        };
        self.shared.changed.notify_waiters();
        Response::new(Full::from(answer.to_string()))
    }

    fn settle(&self, body: &[u8]) -> Value {
        let mut state = self.state();
        state.declared.push(serde_json::from_slice(body).expect("a declaration"));
        let settled = state.settled.pop();
        drop(state);
        settled.unwrap_or_else(|| self.fail("invalid request, uri-mapping(declare) not found."))
    }

    fn register(&self, call: &str, body: &[u8]) -> Value {
        let registry = Registry::read(body).expect("a registration");
        assert!(registry.is_complete());
        let mut state = self.state();
        let list = if call == "registry" { &mut state.registered } else { &mut state.removed };
        list.push(registry.registry_value);
        drop(state);
        self.ok()
    }

    /// As strict as the real admins: the wrong shape is rejected before any effect.
    fn take(&self, body: &[u8], app: Option<&str>) -> Value {
        let is_array = body.first() == Some(&b'[');
        let mut state = self.state();
        match (self.shared.lineage.callback_shape(), is_array) {
            (CallbackShape::Object, true) => {
                state.refused += 1;
                drop(state);
                return self.fail(
                    "openapi invoke error: java.lang.IllegalStateException: \
                     Expected BEGIN_OBJECT but was BEGIN_ARRAY at line 1 column 2 path $",
                );
            }
            (CallbackShape::Array, false) => {
                state.refused += 1;
                drop(state);
                return self.fail("Expected BEGIN_ARRAY but was BEGIN_OBJECT at line 1 column 2 path $");
            }
            _ => {}
        }
        let raw: Value = serde_json::from_slice(body).expect("JSON");
        let items = raw.get("callbackList").unwrap_or(&raw).as_array().expect("a list").len();
        assert!(items <= 50, "{items}");
        if self.shared.lineage == Lineage::L22 {
            let has_result = |item: &Value| item["executeResult"]["code"].is_i64();
            assert!(raw.as_array().is_some_and(|items| items.iter().all(has_result)), "{raw}");
        }
        let items = read_callbacks(body).expect("results");
        for item in items {
            let item = item.expect("a result");
            state.senders.push((app.unwrap_or_default().to_owned(), item.log_id));
            state.results.push(item);
        }
        drop(state);
        self.ok()
    }

    fn confirm(&self, body: &[u8], answer: &Value) {
        if answer["code"] == 200 {
            let items = read_callbacks(body).expect("results").into_iter().flatten();
            self.state().confirmed.extend(items.map(|item| item.log_id));
        }
    }

    fn ok(&self) -> Value {
        match self.shared.lineage {
            Lineage::L22 | Lineage::L23 => json!({"code": 200, "msg": null, "content": null}),
            Lineage::L32 => json!({"code": 200, "msg": "Success", "content": null, "success": true}),
            Lineage::L33 | Lineage::Next => {
                json!({"code": 200, "msg": "Success", "data": null, "success": true})
            }
        }
    }

    fn fail(&self, msg: &str) -> Value {
        json!({"code": 500, "msg": msg, (self.shared.lineage.payload_field()): null})
    }

    fn next_fault(&self) -> Option<Fault> {
        self.state().faults.pop()
    }

    /// Sets the coming faults, the last first; replaces earlier ones.
    pub fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state().faults = faults.into_iter().collect();
    }

    /// Sets the responses to coming declarations, the last first.
    pub fn plan_settled(&self, settled: impl IntoIterator<Item = Value>) {
        self.state().settled = settled.into_iter().collect();
    }

    /// Makes registrations fail, or succeed again.
    pub fn fall_ill(&self, is_ill: bool) {
        self.state().is_ill = is_ill;
    }

    /// Accepts any token from now on.
    pub fn open(&self) {
        self.state().is_open = true;
    }

    pub fn declared(&self) -> Vec<Value> {
        self.state().declared.clone()
    }

    pub fn results(&self) -> Vec<CallbackItem> {
        self.state().results.clone()
    }

    /// App and run id of every received result, in order.
    pub fn senders(&self) -> Vec<(String, i64)> {
        self.state().senders.clone()
    }

    /// Runs with a result that was stored and confirmed to the executor.
    pub fn confirmed(&self) -> BTreeSet<i64> {
        self.state().confirmed.clone()
    }

    /// Whether a response to this app was lost.
    pub fn kept_waiting(&self, app: &str) -> bool {
        self.state().kept_waiting.iter().any(|kept| kept == app)
    }

    pub fn registered(&self) -> Vec<String> {
        self.state().registered.clone()
    }

    pub fn removed(&self) -> Vec<String> {
        self.state().removed.clone()
    }

    /// Number of callbacks with the wrong shape.
    pub fn refused(&self) -> usize {
        self.state().refused
    }

    /// Waits until a condition holds; fails after half a minute.
    pub async fn until(&self, what: &str, holds: impl Fn(&Centre) -> bool) {
        let waiting = async {
            loop {
                let changed = self.shared.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if holds(self) {
                    return;
                }
                changed.await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(120), waiting).await;
        assert!(waited.is_ok(), "waited in vain: {what}; results: {:?}", self.results());
    }

    /// Waits for the result of a run and returns it.
    pub async fn result(&self, run_id: i64) -> (i64, String) {
        self.until(&format!("the result of run {run_id}"), |centre| {
            centre.results().iter().any(|item| item.log_id == run_id)
        })
        .await;
        let results = self.results();
        let item = results.iter().find(|item| item.log_id == run_id).expect("it is there");
        (item.handle_code, item.handle_msg.clone().unwrap_or_default())
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from("{\"code\":500,\"msg\":\"boom\"}"));
    *response.status_mut() = status;
    response
}

/// An executor of app `app` for this centre, on a free port.
pub fn builder(centre: &Centre, directory: &Path) -> Builder {
    Executor::builder("app").centre(centre.url()).token(TOKEN).listen("127.0.0.1:0").directory(directory)
}

/// Sends a request with the right token and returns the response.
pub async fn call(to: SocketAddr, path: &str, body: &str) -> Value {
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nXXL-JOB-ACCESS-TOKEN: {TOKEN}\r\n");
    let (status, body) = send(to, &head, Some(body)).await;
    assert_eq!(status, 200);
    serde_json::from_str(&body).expect("an answer")
}

/// Sends the head unchanged, and a body with its length, if there is one.
pub async fn send(to: SocketAddr, head: &str, body: Option<&str>) -> (u16, String) {
    let mut stream = TcpStream::connect(to).await.expect("it listens");
    let request = match body {
        Some(body) => format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()),
        None => format!("{head}Connection: close\r\n\r\n"),
    };
    // A server may close the connection before the whole request is sent.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, body.to_owned())
}

/// A trigger request; the job id is the run id divided by 100.
pub fn trigger(run_id: i64, handler: &str, param: &str) -> Value {
    json!({
        "jobId": run_id / 100, "executorHandler": handler, "executorParams": param,
        "executorBlockStrategy": "SERIAL_EXECUTION", "executorTimeout": 0, "logId": run_id,
        "logDateTime": 1_794_769_410_531_i64, "glueType": "BEAN", "glueSource": "",
        "glueUpdatetime": 1_700_000_000_000_i64, "broadcastIndex": 0, "broadcastTotal": 1
    })
}

/// Returns the request with one field changed.
pub fn with(mut request: Value, field: &str, value: impl Into<Value>) -> Value {
    request[field] = value.into();
    request
}
