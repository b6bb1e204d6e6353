//! Trace of a run, in order: as the nodes recorded it, otherwise as far as its rows show it.

use engine::{Receipt, RunState};
use protocol::v1::{Moment, MomentKind};
use store::{Flight, RunRow, Sending};
use timer::Timestamp;

use super::call::instant;

/// Builds the trace of a run. `claimed_at` is when the current node claimed it, if known.
pub fn of(run: &RunRow, flights: &[Flight], claimed_at: Option<Timestamp>) -> Vec<Moment> {
    let senders: Vec<(&str, &Sending)> =
        flights.iter().filter_map(|flight| Some((flight.node.as_str(), flight.sending.as_ref()?))).collect();
    let mut story = Story(Vec::new());
    let exact = senders.first().map(|(_, sending)| sending.scheduled_at);
    let exact = exact.or(run.open.as_ref().map(|open| open.scheduled_at));
    story.add(exact.or(run.triggered_at), MomentKind::Scheduled, "");
    for (node, sending) in &senders {
        story.taken(sending.claimed_at, node);
        story.sent(sending);
    }
    let holder = run.open.as_ref().and_then(|open| open.node.as_ref()).map(|node| node.name.as_str());
    if let Some(holder) = holder.filter(|holder| senders.last().is_none_or(|(node, _)| node != holder)) {
        story.taken(claimed_at, holder);
    }
    if senders.is_empty() {
        story.as_rows_say(run);
    }
    if run.state.is_over() {
        let came = flights.iter().find_map(|flight| flight.reported_at);
        let written = flights.iter().find_map(|flight| flight.recorded_at);
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

    /// A node claimed the run: the first one, or one that took it over from another.
    fn taken(&mut self, at: Option<Timestamp>, node: &str) {
        let is_first = !self.0.iter().any(|moment| moment.kind == MomentKind::Claimed);
        self.add(at, if is_first { MomentKind::Claimed } else { MomentKind::TakenOver }, node);
    }

    /// Adds the steps recorded by the node that sent the run.
    fn sent(&mut self, sending: &Sending) {
        let answer = sending.answer.as_ref();
        let address = match answer {
            Some((_, Receipt::Accepted { address } | Receipt::Unknown { address: Some(address), .. })) => {
                address
            }
            _ => "",
        };
        self.add(None, MomentKind::Routed, format!("{} {address}", sending.route).trim());
        self.add(Some(sending.left_at), MomentKind::Sent, address);
        match answer {
            Some((at, Receipt::Accepted { address })) => self.add(Some(*at), MomentKind::Accepted, address),
            Some((at, Receipt::Refused { reason } | Receipt::Deferred { reason })) => {
                self.add(Some(*at), MomentKind::Refused, reason)
            }
            Some((at, Receipt::Unknown { reason, .. })) => self.add(Some(*at), MomentKind::InDoubt, reason),
            None => {}
        }
    }

    /// Adds the steps that the run's row shows, if no node recorded the dispatch.
    fn as_rows_say(&mut self, run: &RunRow) {
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

/// XXL-JOB stores messages with HTML line breaks; converts them to plain text.
fn plain(message: &str) -> String {
    ["<br>", "<br/>", "<br />"].iter().fold(message.to_owned(), |text, tag| text.replace(tag, "\n"))
}
