//! Bodies of requests: no longer, no slower and no deeper than what they are for.

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use http_body_util::BodyExt;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The whole body, if it is no longer than `max` and keeps coming: [`START`] for the first bytes, then [`RATE_MIN`] on
/// average.
pub async fn body(mut body: Body, max: usize) -> Result<Bytes, StatusCode> {
    // What says itself that it is too long is not waited for.
    if body.size_hint().lower() > max as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let started = Instant::now();
    // Once, where it is known: a body that grows piece by piece is copied again and again.
    let mut received = Vec::with_capacity(usize::try_from(body.size_hint().lower()).unwrap_or(0));
    loop {
        let allowed = START + Duration::from_millis(received.len() as u64 * 1_000 / RATE_MIN);
        match timeout_at(started + allowed.min(WAIT_MAX), body.frame()).await {
            Ok(None) => return Ok(received.into()),
            Ok(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                if received.len() + data.len() > max {
                    return Err(StatusCode::PAYLOAD_TOO_LARGE);
                }
                received.extend_from_slice(&data);
            }
            Ok(Some(Err(_))) => return Err(StatusCode::BAD_REQUEST),
            Err(_) => return Err(StatusCode::REQUEST_TIMEOUT),
        }
    }
}

/// Whether JSON is nested deeper than anything that is meant. Read before it is parsed, so that no parser follows.
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

/// How long the first bytes of a body may take to come.
const START: Duration = Duration::from_secs(5);

/// Bytes a second, after that: a telephone line does better.
const RATE_MIN: u64 = 1_024;

/// The longest that a body may take at all.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Nothing that is meant has more than four.
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
        let slow = body(drip(10, Duration::from_secs(1)), 1 << 20).await;
        assert_eq!(slow, Err(StatusCode::REQUEST_TIMEOUT));
        assert!(started.elapsed() < START * 2, "{:?}", started.elapsed());
        let fast = body(drip(4_096, Duration::from_secs(1)), 40_000).await;
        assert_eq!(fast, Err(StatusCode::PAYLOAD_TOO_LARGE), "it came fast enough to be too long");
    }
}
