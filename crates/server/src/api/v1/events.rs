//! `/v1/events`: server-sent events, also used for live logs.
//!
//! A stream queues almost nothing: a hint is a counter that has grown or not. It ends with the session or the API
//! key, when their rights change, after [`STREAM_MAX`] at the latest, and when the node stops; browsers reconnect
//! by themselves.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue};
use futures_util::future::select_all;
use protocol::v1::ProblemCode;
use serde::Serialize;
use store::UserId;
use tokio::sync::mpsc;

use super::authorise::{Authorised, Nothing};
use super::call::Call;
use super::reply::Reply;
use super::state::V1State;
use crate::request_error::RequestError;

/// Streams hints about changes, so that clients reload.
pub async fn list(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    stream(call, |state, out| async move {
        let mut kinds = state.hints.watch();
        let mut known = kinds.each_ref().map(|(_, count)| *count.borrow());
        loop {
            let heard = select_all(kinds.iter_mut().map(|(_, count)| Box::pin(count.changed())));
            let by_others = tokio::select! {
                _ = heard => false,
                // Changes made by other nodes do not reach this node's counters.
                () = state.clock.sleep(OTHERS_LOOK) => state.engine.peers().len() > 1,
            };
            state.clock.sleep(TOGETHER).await;
            for ((event, count), known) in kinds.iter_mut().zip(&mut known) {
                let count = *count.borrow_and_update();
                let is_new = std::mem::replace(known, count) != count;
                if (is_new || by_others) && !out.send(event).await {
                    return;
                }
            }
        }
    })
}

/// Hints within this time are merged into one.
const TOGETHER: Duration = Duration::from_millis(300);

/// How often clients are asked to reload because other nodes may have changed something.
const OTHERS_LOOK: Duration = Duration::from_secs(3);

/// Sending side of a stream.
pub struct Out(mpsc::Sender<Bytes>);

impl Out {
    /// Sends an event. Returns false if the client has disconnected.
    pub async fn send(&self, data: &impl Serialize) -> bool {
        let json = serde_json::to_string(data).expect("API types have text keys");
        self.write(format!("data: {json}\n\n")).await
    }

    async fn write(&self, text: String) -> bool {
        self.0.send(Bytes::from(text)).await.is_ok()
    }
}

/// Responds with the events that `work` sends, as long as the caller's credential is valid.
pub fn stream<Work>(
    call: Call,
    work: impl FnOnce(Arc<V1State>, Out) -> Work + Send + 'static,
) -> Result<Reply, RequestError>
where
    Work: Future<Output = ()> + Send,
{
    let state = call.state.clone();
    let user = call.who.user.as_ref();
    let user = user.ok_or_else(|| RequestError::new(ProblemCode::NotSignedIn, "sign in first"))?;
    let slot = state.streams.enter(user.id, user.access.admin).ok_or_else(|| {
        let why = format!(
            "too many open streams: at most {STREAMS_EACH} per user and {STREAMS_ALL} in total; close some"
        );
        RequestError::new(ProblemCode::TooManyRequests, why).retry_after(BEAT)
    })?;
    let (sender, receiver) = mpsc::channel(WRITTEN_MAX);
    tokio::spawn(async move {
        let (out, reader) = (Out(sender.clone()), sender.clone());
        let _slot = slot;
        tokio::select! {
            () = work(state.clone(), out) => {}
            // A closed browser window frees its stream at once, or a user who changes pages quickly would reach
            // the limit.
            () = reader.closed() => {}
            () = beat(&state, Out(sender)) => {}
            () = credential_ends(&state, &call) => {}
            () = state.clock.sleep(STREAM_MAX) => {}
            () = state.closing.cancelled() => {}
        }
    });
    let written = futures_util::stream::unfold(receiver, |mut receiver| async move {
        let text = receiver.recv().await?;
        Some((Ok::<_, Infallible>(text), receiver))
    });
    let reply = Reply::typed("text/event-stream", Body::from_stream(written));
    // Without this header, proxies would buffer the events.
    Ok(reply.header(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")))
}

/// Sends comments to keep the connection open.
async fn beat(state: &V1State, out: Out) {
    let retry = format!("retry: {}\n\n", AGAIN.as_millis());
    let mut is_read = out.write(retry).await;
    while is_read {
        state.clock.sleep(BEAT).await;
        is_read = out.write(": keep-alive\n\n".into()).await;
    }
}

/// Returns when the caller's session or API key is no longer valid, or its rights have changed. A change on this
/// node is noticed at once, one on another node within twice [`LOOK`].
async fn credential_ends(state: &V1State, call: &Call) {
    let mut ends = state.users.ends();
    loop {
        let is_told = tokio::select! {
            told = ends.changed() => told.is_ok(),
            () = state.clock.sleep(LOOK) => false,
        };
        let credential = call.who.credential();
        if !is_told && !state.streams.is_due(credential, state.clock.monotonic()) {
            continue;
        }
        // An error of the database does not invalidate the session.
        if matches!(call.who.lasts(state).await, Ok(false)) {
            return;
        }
    }
}

/// How often a session or an API key is checked for having expired or having been revoked on another node.
const LOOK: Duration = Duration::from_secs(1);

/// Delay after which a browser reconnects.
const AGAIN: Duration = Duration::from_secs(2);

/// Heartbeat interval; proxies close connections that are silent for half a minute.
const BEAT: Duration = Duration::from_secs(15);

/// Maximum duration of a stream; the client then reconnects.
const STREAM_MAX: Duration = Duration::from_secs(60 * 60);

/// Events queued for a slow client; beyond that, the sender waits for it.
const WRITTEN_MAX: usize = 8;

/// Open streams.
#[derive(Default)]
pub struct Streams(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    /// Number of streams per user, over all their sessions and API keys.
    of: HashMap<UserId, usize>,
    /// When each credential was last checked, once for all its streams.
    looked: HashMap<String, Duration>,
}

/// One open stream; frees its slot when dropped.
struct StreamSlot {
    streams: Arc<Mutex<Open>>,
    user: UserId,
}

impl Streams {
    fn enter(&self, user: UserId, is_admin: bool) -> Option<StreamSlot> {
        let mut open = self.0.lock().expect("no holder of this lock panics");
        let all: usize = open.of.values().sum();
        let own = open.of.get(&user).copied().unwrap_or(0);
        let is_full = all >= STREAMS_ALL && !(is_admin && own < STREAMS_RESERVED);
        if own >= STREAMS_EACH || is_full {
            return None;
        }
        open.of.insert(user, own + 1);
        Some(StreamSlot { streams: self.0.clone(), user })
    }

    /// Whether a credential was not checked within [`LOOK`]; if so, the caller has to check it now.
    fn is_due(&self, credential: &str, now: Duration) -> bool {
        let mut open = self.0.lock().expect("no holder of this lock panics");
        if open.looked.len() > STREAMS_ALL {
            open.looked.retain(|_, at| now.saturating_sub(*at) < LOOK);
        }
        match open.looked.get(credential) {
            Some(at) if now.saturating_sub(*at) < LOOK => false,
            _ => {
                open.looked.insert(credential.to_owned(), now);
                true
            }
        }
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.streams.lock().expect("no holder of this lock panics");
        match open.of.get_mut(&self.user) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.of.remove(&self.user)),
        }
    }
}

/// Streams (console windows and live logs) that one user may have open.
const STREAMS_EACH: usize = 20;

/// Streams of all users together.
const STREAMS_ALL: usize = 1_000;

/// Streams that an administrator gets even above [`STREAMS_ALL`]: one for the console and one for a log.
const STREAMS_RESERVED: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_so_many_streams_and_gets_them_back() {
        let streams = Streams::default();
        let (ann, bob) = (UserId(1), UserId(2));
        let mut slots: Vec<_> = (0..STREAMS_EACH).map(|_| streams.enter(ann, true).unwrap()).collect();
        assert!(streams.enter(ann, true).is_none());
        assert!(streams.enter(bob, false).is_some());
        slots.pop();
        assert!(streams.enter(ann, true).is_some());
        drop(slots);
        assert!(streams.0.lock().unwrap().of.is_empty());
    }

    #[test]
    fn an_administrator_gets_a_stream_when_others_have_taken_all() {
        let streams = Streams::default();
        let users = (0..).map(UserId).take(STREAMS_ALL / STREAMS_EACH);
        let of = |user| (0..STREAMS_EACH).map(move |_| user);
        let _places: Vec<_> = users.flat_map(of).map(|user| streams.enter(user, false).unwrap()).collect();
        let (ann, admin) = (UserId(-1), UserId(-2));
        assert!(streams.enter(ann, false).is_none());
        let _reserved: Vec<_> = (0..STREAMS_RESERVED).map(|_| streams.enter(admin, true).unwrap()).collect();
        assert!(streams.enter(admin, true).is_none());
    }

    #[test]
    fn a_credential_is_looked_up_once_for_all_its_streams() {
        let streams = Streams::default();
        let now = Duration::from_secs(1_000);
        assert!(streams.is_due("one", now) && streams.is_due("two", now));
        assert!(!streams.is_due("one", now + LOOK / 2));
        assert!(streams.is_due("one", now + LOOK));
    }
}
