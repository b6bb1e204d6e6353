//! An executor that accepts every run, records it in the journal and reports success; or misbehaves on request.
//!
//! It answers as XXL-JOB's executors do: `/log` and `/idleBeat` reflect the runs it accepted, so that a centre can
//! find out about an unclear run. An accepted run is in the journal even if the response is never sent.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::xxl::{LogRequest, Registry, TriggerRequest, texts};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::http::Wire;
use super::journal::{Entry, Journal, micros_now};
use super::reporter::{self, Centres, Done};

/// Behaviour of an executor for run requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Accepts and responds immediately.
    Well,
    /// Accepts and responds after a delay.
    Slow(Duration),
    /// Accepts and never responds.
    Hang,
    /// Accepts and responds one byte at a time.
    Drip,
    /// Accepts, then resets the connection.
    Reset,
    /// Resets connections as soon as they are opened; accepts nothing.
    ResetUnread,
    /// Accepts and responds with truncated JSON.
    WrongJson,
    /// Accepts and responds with a huge body.
    Huge,
}

/// An executor inside the test process.
pub struct JournalExecutor {
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
    reporting: JoinHandle<()>,
}

struct Shared {
    app: String,
    address: SocketAddr,
    is_registered: AtomicBool,
    journal: Journal,
    mood: Mutex<Mood>,
    /// Ids of the accepted runs.
    taken: Mutex<HashSet<i64>>,
    done: mpsc::UnboundedSender<Done>,
    centres: Centres,
}

impl JournalExecutor {
    /// Starts listening, and reports to any of these centres. Does not register yet.
    pub async fn start(app: &str, token: &str, centres: &[SocketAddr], journal: Journal) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (done, reports) = mpsc::unbounded_channel();
        let centres = Centres::new(centres, token);
        let reporting = tokio::spawn(reporter::report(reports, centres.clone(), journal.clone()));
        let mood = Mutex::new(Mood::Well);
        let (app, is_registered) = (app.to_owned(), AtomicBool::new(false));
        let taken = Mutex::default();
        let shared = Arc::new(Shared { app, address, is_registered, journal, mood, taken, done, centres });
        let listening = tokio::spawn(listen(listener, shared.clone()));
        Ok(JournalExecutor { shared, listening, reporting })
    }

    /// URL of the executor.
    pub fn url(&self) -> String {
        self.shared.url()
    }

    /// Registers with the first centre that accepts it, and from then on periodically.
    pub async fn register(&self) -> io::Result<()> {
        self.shared.register().await?;
        self.shared.is_registered.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Changes the behaviour.
    pub fn feel(&self, mood: Mood) {
        *self.shared.mood.lock().unwrap_or_else(PoisonError::into_inner) = mood;
    }

    /// Simulates a crash: its connections break, and its port is closed.
    pub fn die(&self) {
        // The listening task owns the tasks that serve connections and register.
        self.listening.abort();
    }

    /// Listens at the same address again.
    pub async fn come_back(&mut self) -> io::Result<()> {
        let listener = TcpListener::bind(self.shared.address).await?;
        self.listening = tokio::spawn(listen(listener, self.shared.clone()));
        Ok(())
    }
}

impl Drop for JournalExecutor {
    fn drop(&mut self) {
        self.listening.abort();
        self.reporting.abort();
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut tasks = tokio::task::JoinSet::new();
    let mut beat = tokio::time::interval(BEAT);
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                tasks.spawn(serve(stream, shared.clone()));
            },
            _ = beat.tick() => if shared.is_registered.load(Ordering::Relaxed) {
                let shared = shared.clone();
                tasks.spawn(async move { shared.register().await });
            },
            Some(_) = tasks.join_next() => {}
        }
    }
}

/// Registration interval of executors. Centres drop an executor after three intervals.
const BEAT: Duration = Duration::from_secs(30);

async fn serve(stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    if shared.mood() == Mood::ResetUnread {
        return stream.set_zero_linger();
    }
    let mut wire = Wire::new(stream);
    while let Some(request) = wire.receive().await? {
        let arrived = micros_now();
        match request.path() {
            "/run" | "/trigger" => {
                let request = TriggerRequest::read(&request.body).map_err(io::Error::other)?;
                shared.take(&request, arrived);
                if !shared.answer_run(&mut wire).await? {
                    return Ok(());
                }
            }
            "/log" => {
                let asked = LogRequest::read(&request.body).map_err(io::Error::other)?;
                wire.answer(&log_page(asked, shared.knows(asked.log_id))).await?;
            }
            "/beat" | "/idleBeat" | "/kill" => wire.answer(OK).await?,
            other => wire.answer(&format!(r#"{{"code":500,"msg":"{}"}}"#, texts::unknown_uri(other))).await?,
        }
    }
    Ok(())
}

impl Shared {
    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    async fn register(&self) -> io::Result<()> {
        let registry = Registry::executor(&self.app, &self.url());
        let body = format!(
            r#"{{"registryGroup":"{}","registryKey":"{}","registryValue":"{}"}}"#,
            registry.registry_group, registry.registry_key, registry.registry_value
        );
        self.centres.post("/api/registry", &body).await
    }

    fn mood(&self) -> Mood {
        *self.mood.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, request: &TriggerRequest, arrived_us: i64) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(request.log_id);
        self.journal.take(Entry::new(request, arrived_us));
        // Fails only while the executor is being dropped.
        let _ = self.done.send(Done { run: request.log_id, scheduled_ms: request.log_date_time });
    }

    fn knows(&self, run: i64) -> bool {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).contains(&run)
    }

    /// Responds according to the mood. Returns false if the connection is closed.
    async fn answer_run(&self, wire: &mut Wire) -> io::Result<bool> {
        match self.mood() {
            Mood::Well => wire.answer(OK).await?,
            Mood::Slow(length) => {
                tokio::time::sleep(length).await;
                wire.answer(OK).await?;
            }
            Mood::Hang => tokio::time::sleep(HANG).await,
            Mood::Drip => {
                for byte in super::http::answer(OK).into_bytes() {
                    wire.stream.write_all(&[byte]).await?;
                    tokio::time::sleep(DRIP).await;
                }
            }
            Mood::Reset | Mood::ResetUnread => {
                wire.stream.set_zero_linger()?;
                return Ok(false);
            }
            Mood::WrongJson => wire.answer(r#"{"code":200,"msg":"#).await?,
            Mood::Huge => {
                wire.stream
                    .write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {HUGE}\r\n\r\n").as_bytes())
                    .await?;
                let chunk = vec![b' '; 64 * 1024];
                for _ in 0..HUGE / chunk.len() {
                    wire.stream.write_all(&chunk).await?;
                }
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Response of XXL-JOB's executors to a log request: with or without a log.
fn log_page(asked: LogRequest, is_known: bool) -> String {
    let text = if is_known { "taken" } else { texts::NO_LOG_FILE };
    let from = asked.from_line_num;
    format!(
        r#"{{"code":200,"msg":null,"content":{{"fromLineNum":{from},"toLineNum":1,"logContent":"{text}","isEnd":{is_known}}}}}"#
    )
}

const OK: &str = r#"{"code":200,"msg":null,"content":null}"#;

/// Longer than the timeout of any centre.
const HANG: Duration = Duration::from_secs(3_600);

const DRIP: Duration = Duration::from_millis(100);

const HUGE: usize = 100 * 1024 * 1024;
