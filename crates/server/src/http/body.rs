//! Request bodies, with limits on size, speed and nesting depth.

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use http_body_util::BodyExt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

use super::body_slots::{BodySlot, BodySlots, Holder};

/// A received body, and the slot that it holds if it is large.
pub struct Received {
    bytes: Bytes,
    _slot: Option<BodySlot>,
}

impl Deref for Received {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.bytes
    }
}

/// Size limit for a caller's body.
#[derive(Clone, Copy)]
pub enum BodyLimit<'a> {
    /// At most [`SMALL_MAX`]: the caller is not authenticated.
    Small,
    /// Larger bodies allowed, in a slot of this holder.
    Large(&'a Arc<BodySlots>, Holder),
}

/// Reads the whole body, if it is no longer than `max` and arrives fast enough: [`START`] for the first bytes,
/// then [`RATE_MIN`] on average. A body over [`SMALL_MAX`] waits for a slot; if none gets free, the error is 429.
pub async fn body(mut body: Body, max: usize, limit: BodyLimit<'_>) -> Result<Received, StatusCode> {
    let max = if matches!(limit, BodyLimit::Small) { max.min(SMALL_MAX) } else { max };
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    // A body that declares a length over the limit is rejected without reading it.
    if declared > max {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let mut slot = if declared > SMALL_MAX { take(limit).await? } else { None };
    let mut started = Instant::now();
    // Allocated once if the length is known; a growing buffer would be copied again and again.
    let mut received = Vec::with_capacity(declared);
    loop {
        let allowed = START + Duration::from_millis(received.len() as u64 * 1_000 / RATE_MIN);
        match timeout_at(started + allowed.min(WAIT_MAX), body.frame()).await {
            Ok(None) => return Ok(Received { bytes: received.into(), _slot: slot }),
            Ok(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                if received.len() + data.len() > max {
                    return Err(StatusCode::PAYLOAD_TOO_LARGE);
                }
                if received.len() + data.len() > SMALL_MAX && slot.is_none() {
                    let waits_since = Instant::now();
                    slot = take(limit).await?;
                    started += waits_since.elapsed();
                }
                received.extend_from_slice(&data);
            }
            Ok(Some(Err(_))) => return Err(StatusCode::BAD_REQUEST),
            Err(_) => return Err(StatusCode::REQUEST_TIMEOUT),
        }
    }
}

async fn take(limit: BodyLimit<'_>) -> Result<Option<BodySlot>, StatusCode> {
    match limit {
        BodyLimit::Small => Err(StatusCode::PAYLOAD_TOO_LARGE),
        BodyLimit::Large(slots, holder) => {
            slots.take(holder).await.map(Some).ok_or(StatusCode::TOO_MANY_REQUESTS)
        }
    }
}

/// Whether JSON is nested too deeply. Checked before parsing, to protect the recursive parser.
pub fn is_too_deep(json: &[u8]) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return true;
                }
            }
            b'}' | b']' if !in_text => depth -= 1,
            _ => {}
        }
    }
    false
}

/// A longer body needs a slot. Results of thousands of runs are shorter.
pub const SMALL_MAX: usize = 64 * 1024;

/// Timeout for the first bytes of a body.
const START: Duration = Duration::from_secs(5);

/// Minimum average speed after that, in bytes per second; a telephone line is faster.
const RATE_MIN: u64 = 1_024;

/// Maximum duration of reading a body.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Valid bodies have at most four levels.
const DEPTH_MAX: i32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_of_texts() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth)).into_bytes();
        assert!(!is_too_deep(&nested(32)) && is_too_deep(&nested(33)));
        assert!(!is_too_deep(format!("[\"{}\"]", "[".repeat(99)).as_bytes()));
        assert!(!is_too_deep(format!("[\"\\\"{}\"]", "{".repeat(99)).as_bytes()));
        assert!(!is_too_deep("[],".repeat(99).as_bytes()));
        assert!(is_too_deep(&b"{\"a\":".repeat(40)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_is_given_up() {
        let drip = |bytes: usize, every: Duration| {
            let chunks = futures_util::stream::unfold((), move |()| async move {
                tokio::time::sleep(every).await;
                Some((Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; bytes])), ()))
            });
            Body::from_stream(chunks)
        };
        let started = Instant::now();
        let slow = body(drip(10, Duration::from_secs(1)), 1 << 20, BodyLimit::Small).await;
        assert_eq!(slow.err(), Some(StatusCode::REQUEST_TIMEOUT));
        assert!(started.elapsed() < START * 2, "{:?}", started.elapsed());
        let fast = body(drip(4_096, Duration::from_secs(1)), 40_000, BodyLimit::Small).await;
        assert_eq!(fast.err(), Some(StatusCode::PAYLOAD_TOO_LARGE), "it came fast enough to be too long");
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_takes_a_place_until_it_is_dropped_and_strangers_get_none() {
        let slots = Arc::new(BodySlots::default());
        let limit = BodyLimit::Large(&slots, Holder::Admin(store::UserId(1)));
        let chunked = |length: usize| {
            let chunks = vec![b'x'; length];
            let chunks: Vec<_> = chunks
                .chunks(4_096)
                .map(|chunk| Ok::<_, std::io::Error>(Bytes::copy_from_slice(chunk)))
                .collect();
            Body::from_stream(futures_util::stream::iter(chunks))
        };
        let large = SMALL_MAX + 1;
        for sent in [chunked(large), Body::from(vec![b'x'; large])] {
            assert_eq!(
                body(sent, 1 << 20, BodyLimit::Small).await.err(),
                Some(StatusCode::PAYLOAD_TOO_LARGE)
            );
        }
        let Ok(held) = body(chunked(large), 1 << 20, limit).await else { panic!("there is a place") };
        assert_eq!(held.len(), large);
        for sent in [chunked(large), Body::from(vec![b'x'; large])] {
            assert_eq!(body(sent, 1 << 20, limit).await.err(), Some(StatusCode::TOO_MANY_REQUESTS));
        }
        assert!(body(chunked(SMALL_MAX), 1 << 20, limit).await.is_ok(), "a small one needs none");
        drop(held);
        assert!(body(Body::from(vec![b'x'; large]), 1 << 20, limit).await.is_ok());
    }
}
