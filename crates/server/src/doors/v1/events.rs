//! `/v1/events`, and all else that is sent as it happens.
//!
//! A stream queues next to nothing: hints are numbers that have grown or not. It ends when the session does, after a
//! while in any case, and when the centre stops; browsers then come again by themselves.

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
use tokio::sync::mpsc;

use super::authorise::{Authorised, Nothing};
use super::call::Call;
use super::problem::{self, Refused};
use super::reply::Reply;
use crate::centre::Inside;

/// Hints for whoever looks on.
pub async fn list(call: Call, _: Authorised<Nothing>) -> Result<Reply, Refused> {
    stream(call, |inside, out| async move {
        let mut kinds = inside.hints.watch();
        let mut known = kinds.each_ref().map(|(_, count)| *count.borrow());
        loop {
            let heard = select_all(kinds.iter_mut().map(|(_, count)| Box::pin(count.changed())));
            let by_others = tokio::select! {
                _ = heard => false,
                // What other nodes do is not heard here.
                () = inside.clock.sleep(OTHERS_LOOK) => inside.engine.peers().len() > 1,
            };
            inside.clock.sleep(TOGETHER).await;
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

/// Hints that come so close to each other are one.
const TOGETHER: Duration = Duration::from_millis(300);

/// How often those who look on are told to look for what other nodes did.
const OTHERS_LOOK: Duration = Duration::from_secs(3);

/// Where a stream writes.
pub struct Out(mpsc::Sender<Bytes>);

impl Out {
    /// Sends something; false when nobody reads any more.
    pub async fn send(&self, data: &impl Serialize) -> bool {
        let json = serde_json::to_string(data).expect("views have texts for keys");
        self.write(format!("data: {json}\n\n")).await
    }

    async fn write(&self, text: String) -> bool {
        self.0.send(Bytes::from(text)).await.is_ok()
    }
}

/// Answers with what `work` sends, as server-sent events, while the caller's credential counts.
pub fn stream<Work>(
    call: Call,
    work: impl FnOnce(Arc<Inside>, Out) -> Work + Send + 'static,
) -> Result<Reply, Refused>
where
    Work: Future<Output = ()> + Send,
{
    let inside = call.inside.clone();
    let place = inside.streams.enter(&call.who.principal.name).ok_or_else(|| {
        let why = format!("{STREAMS_EACH} streams at once are the most; close some");
        problem::new(ProblemCode::TooManyRequests, why).retry_after(BEAT)
    })?;
    let (sender, receiver) = mpsc::channel(WRITTEN_MAX);
    tokio::spawn(async move {
        let (out, reader) = (Out(sender.clone()), sender.clone());
        let _place = place;
        tokio::select! {
            () = work(inside.clone(), out) => {}
            // A window that was closed gives its place back at once, or whoever browses quickly would run out of them.
            () = reader.closed() => {}
            () = beat(&inside, &call, Out(sender)) => {}
            () = inside.clock.sleep(STREAM_MAX) => {}
            () = inside.closing.cancelled() => {}
        }
    });
    let written = futures_util::stream::unfold(receiver, |mut receiver| async move {
        let text = receiver.recv().await?;
        Some((Ok::<_, Infallible>(text), receiver))
    });
    let reply = Reply::typed("text/event-stream", Body::from_stream(written));
    // Proxies would wait for more before they pass anything on.
    Ok(reply.header(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")))
}

/// Keeps the connection from looking dead, and ends the stream with the session.
async fn beat(inside: &Inside, call: &Call, out: Out) {
    let retry = format!("retry: {}\n\n", AGAIN.as_millis());
    let mut is_read = out.write(retry).await;
    while is_read {
        inside.clock.sleep(BEAT).await;
        // A database that does not answer says nothing about the session.
        if matches!(call.who.lasts(inside).await, Ok(false)) {
            return;
        }
        is_read = out.write(": still here\n\n".into()).await;
    }
}

/// How soon a browser comes again.
const AGAIN: Duration = Duration::from_secs(2);

/// Proxies close connections that are silent for half a minute.
const BEAT: Duration = Duration::from_secs(15);

/// A stream ends after so long; whoever looks on comes again.
const STREAM_MAX: Duration = Duration::from_secs(60 * 60);

/// Written and not read yet: who reads so slowly is waited for.
const WRITTEN_MAX: usize = 8;

/// The streams that are open.
#[derive(Default)]
pub struct Streams(Arc<Mutex<HashMap<String, usize>>>);

/// A place among them, until it is dropped.
struct Place {
    streams: Arc<Mutex<HashMap<String, usize>>>,
    name: String,
}

impl Streams {
    fn enter(&self, name: &str) -> Option<Place> {
        let mut open = self.0.lock().expect("no holder of this lock panics");
        let all: usize = open.values().sum();
        let own = open.get(name).copied().unwrap_or(0);
        if own >= STREAMS_EACH || all >= STREAMS_ALL {
            return None;
        }
        open.insert(name.to_owned(), own + 1);
        Some(Place { streams: self.0.clone(), name: name.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.lock().expect("no holder of this lock panics");
        match open.get_mut(&self.name) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(&self.name)),
        }
    }
}

/// Windows and logs that one person has open,
const STREAMS_EACH: usize = 20;

/// and all together.
const STREAMS_ALL: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_so_many_streams_and_gets_them_back() {
        let streams = Streams::default();
        let mut places: Vec<_> = (0..STREAMS_EACH).map(|_| streams.enter("ann").unwrap()).collect();
        assert!(streams.enter("ann").is_none());
        assert!(streams.enter("bob").is_some());
        places.pop();
        assert!(streams.enter("ann").is_some());
        drop(places);
        assert!(streams.0.lock().unwrap().is_empty());
    }
}
