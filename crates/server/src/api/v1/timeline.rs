//! Trace of a run, in order: as the nodes recorded it, otherwise as far as its rows show it.

use engine::{Receipt, RunState};
use protocol::v1::{TraceStep, TraceStepKind};
use store::{NodeTrace, RunRow, Sending};
use timer::Timestamp;

use super::call::instant;

/// Builds the trace of a run. `claimed_at` is when the current node claimed it, if known.
pub fn of(run: &RunRow, traces: &[NodeTrace], claimed_at: Option<Timestamp>) -> Vec<TraceStep> {
    let senders: Vec<(&str, &Sending)> =
        traces.iter().filter_map(|trace| Some((trace.node.as_str(), trace.sending.as_ref()?))).collect();
    let mut timeline = Timeline(Vec::new());
    let exact = senders.first().map(|(_, sending)| sending.scheduled_at);
    let exact = exact.or(run.open.as_ref().map(|open| open.scheduled_at));
    timeline.add(exact.or(run.triggered_at), TraceStepKind::Scheduled, "");
    for (node, sending) in &senders {
        timeline.taken(sending.claimed_at, node);
        timeline.sent(sending);
    }
    let holder = run.open.as_ref().and_then(|open| open.node.as_ref()).map(|node| node.name.as_str());
    if let Some(holder) = holder.filter(|holder| senders.last().is_none_or(|(node, _)| node != holder)) {
        timeline.taken(claimed_at, holder);
    }
    if senders.is_empty() {
        timeline.as_rows_say(run);
    }
    if run.state.is_over() {
        let came = traces.iter().find_map(|trace| trace.reported_at);
        let written = traces.iter().find_map(|trace| trace.recorded_at);
        timeline.add(came, TraceStepKind::Ended, run.result_message.as_deref().unwrap_or_default());
        timeline.add(written.or(run.ended_at), TraceStepKind::Recorded, "");
    }
    timeline.0
}

struct Timeline(Vec<TraceStep>);

impl Timeline {
    fn add(&mut self, at: Option<Timestamp>, kind: TraceStepKind, detail: &str) {
        self.0.push(TraceStep { at: at.map(instant), kind, detail: plain(detail) });
    }

    /// A node claimed the run: the first one, or one that took it over from another.
    fn taken(&mut self, at: Option<Timestamp>, node: &str) {
        let is_first = !self.0.iter().any(|step| step.kind == TraceStepKind::Claimed);
        self.add(at, if is_first { TraceStepKind::Claimed } else { TraceStepKind::TakenOver }, node);
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
        self.add(None, TraceStepKind::Routed, format!("{} {address}", sending.route).trim());
        self.add(Some(sending.left_at), TraceStepKind::Sent, address);
        match answer {
            Some((at, Receipt::Accepted { address })) => {
                self.add(Some(*at), TraceStepKind::Accepted, address)
            }
            Some((at, Receipt::Refused { reason } | Receipt::Deferred { reason })) => {
                self.add(Some(*at), TraceStepKind::Refused, reason)
            }
            Some((at, Receipt::Unknown { reason, .. })) => {
                self.add(Some(*at), TraceStepKind::InDoubt, reason)
            }
            None => {}
        }
    }

    /// Adds the steps that the run's row shows, if no node recorded the dispatch.
    fn as_rows_say(&mut self, run: &RunRow) {
        let was_sent = !matches!(run.state, RunState::Waiting | RunState::Claimed | RunState::Cancelling);
        if let Some(address) = run.address.as_deref().filter(|_| was_sent) {
            self.add(None, TraceStepKind::Sent, address);
        }
        let said = run.trigger_message.as_deref().unwrap_or_default();
        match (run.state, run.trigger_code) {
            (RunState::Unknown, _) => self.add(None, TraceStepKind::InDoubt, said),
            (_, 200) if was_sent => self.add(None, TraceStepKind::Accepted, said),
            (_, 0 | 200) => {}
            _ => self.add(run.ended_at, TraceStepKind::Refused, said),
        }
    }
}

/// XXL-JOB stores messages with HTML line breaks; converts them to plain text.
fn plain(message: &str) -> String {
    ["<br>", "<br/>", "<br />"].iter().fold(message.to_owned(), |text, tag| text.replace(tag, "\n"))
}
