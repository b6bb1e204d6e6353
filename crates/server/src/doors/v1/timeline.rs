//! What happened to a run, in order, as far as its rows say.

use engine::{RunState, StoreError};
use protocol::v1::{Moment, MomentKind};
use store::RunRow;
use timer::Timestamp;

use super::call::{Call, instant};

/// What happened to a run.
pub async fn of(call: &Call, run: &RunRow) -> Result<Vec<Moment>, StoreError> {
    let mut moments = Vec::new();
    let mut add = |at: Option<Timestamp>, kind, detail: &str| {
        moments.push(Moment { at: at.map(instant), kind, detail: plain(detail) });
    };
    let open = run.open.as_ref();
    add(open.map(|open| open.scheduled_at).or(run.triggered_at), MomentKind::Scheduled, "");
    if let Some(node) = open.and_then(|open| open.node.as_ref()) {
        add(None, MomentKind::Claimed, &node.name);
    }
    let was_sent = !matches!(run.state, RunState::Waiting | RunState::Claimed | RunState::Cancelling);
    if let Some(address) = run.address.as_deref().filter(|_| was_sent) {
        let job = call.inside.database.job(run.job).await?;
        let route = job.map(|job| job.spec.route).unwrap_or_default();
        add(None, MomentKind::Routed, &format!("{route} {address}"));
        add(None, MomentKind::Sent, address);
    }
    let said = run.trigger_message.as_deref().unwrap_or_default();
    match (run.state, run.trigger_code) {
        (RunState::Unknown, _) => add(None, MomentKind::InDoubt, said),
        (_, 200) if was_sent => add(None, MomentKind::Accepted, said),
        (_, 0 | 200) => {}
        _ => add(run.ended_at, MomentKind::Refused, said),
    }
    if run.state.is_over() {
        add(None, MomentKind::Ended, run.result_message.as_deref().unwrap_or_default());
        add(run.ended_at, MomentKind::Recorded, "");
    }
    Ok(moments)
}

/// XXL-JOB writes its messages with line breaks for pages; they are texts here.
fn plain(message: &str) -> String {
    ["<br>", "<br/>", "<br />"].iter().fold(message.to_owned(), |text, tag| text.replace(tag, "\n"))
}
