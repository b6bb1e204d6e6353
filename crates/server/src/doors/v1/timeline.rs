//! What happened to a run, in order: from this node's flight recorder where it has the run, else as far as its rows say.

use engine::{Receipt, RunState};
use protocol::v1::{Moment, MomentKind};
use store::RunRow;
use timer::Timestamp;

use super::call::{Call, instant};
use crate::runs::Flight;

/// What happened to a run.
pub fn of(call: &Call, run: &RunRow) -> Vec<Moment> {
    let mut story = Story(Vec::new());
    let flight = call.inside.flights.of(run.id);
    let exact = flight.as_ref().map(|flight| flight.scheduled_at);
    let exact = exact.or(run.open.as_ref().map(|open| open.scheduled_at));
    story.add(exact.or(run.triggered_at), MomentKind::Scheduled, "");
    let holder = run.open.as_ref().and_then(|open| open.node.as_ref()).map(|node| node.name.as_str());
    match &flight {
        Some(flight) => story.recorded(flight),
        None => {
            if let Some(node) = holder {
                story.add(None, MomentKind::Claimed, node);
            }
            story.sending(run);
        }
    }
    if let (Some(flight), Some(holder)) = (&flight, holder)
        && flight.node.as_deref() != Some(holder)
    {
        story.add(None, MomentKind::TakenOver, holder);
    }
    if run.state.is_over() {
        let (came, written) = flight.map_or((None, None), |flight| (flight.reported_at, flight.recorded_at));
        story.add(came, MomentKind::Ended, run.result_message.as_deref().unwrap_or_default());
        story.add(written.or(run.ended_at), MomentKind::Recorded, "");
    }
    story.0
}

struct Story(Vec<Moment>);

impl Story {
    fn add(&mut self, at: Option<Timestamp>, kind: MomentKind, detail: &str) {
        self.0.push(Moment { at: at.map(instant), kind, detail: plain(detail) });
    }

    /// What the flight recorder knows.
    fn recorded(&mut self, flight: &Flight) {
        if let Some(node) = &flight.node {
            self.add(None, MomentKind::Claimed, node);
        }
        let answer = flight.answer.as_ref();
        let address = match answer {
            Some((_, Receipt::Accepted { address } | Receipt::Unknown { address: Some(address), .. })) => {
                address
            }
            _ => "",
        };
        self.add(None, MomentKind::Routed, format!("{} {address}", flight.route).trim());
        self.add(Some(flight.left_at), MomentKind::Sent, address);
        match answer {
            Some((at, Receipt::Accepted { address })) => self.add(Some(*at), MomentKind::Accepted, address),
            Some((at, Receipt::Refused { reason })) => self.add(Some(*at), MomentKind::Refused, reason),
            Some((at, Receipt::Unknown { reason, .. })) => self.add(Some(*at), MomentKind::InDoubt, reason),
            None => {}
        }
    }

    /// What the rows say of the sending.
    fn sending(&mut self, run: &RunRow) {
        let was_sent = !matches!(run.state, RunState::Waiting | RunState::Claimed | RunState::Cancelling);
        if let Some(address) = run.address.as_deref().filter(|_| was_sent) {
            self.add(None, MomentKind::Sent, address);
        }
        let said = run.trigger_message.as_deref().unwrap_or_default();
        match (run.state, run.trigger_code) {
            (RunState::Unknown, _) => self.add(None, MomentKind::InDoubt, said),
            (_, 200) if was_sent => self.add(None, MomentKind::Accepted, said),
            (_, 0 | 200) => {}
            _ => self.add(run.ended_at, MomentKind::Refused, said),
        }
    }
}

/// XXL-JOB writes its messages with line breaks for pages; they are texts here.
fn plain(message: &str) -> String {
    ["<br>", "<br/>", "<br />"].iter().fold(message.to_owned(), |text, tag| text.replace(tag, "\n"))
}
