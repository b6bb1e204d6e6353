//! When a job's schedule was in force, as far as its client can know.

use cron::Timestamp;
use engine::JobSpec;

use crate::sim::clock::{Ms, START};
use crate::sim::evidence::{Operation, OperationRecord};

/// States of a job over time.
pub struct Timeline {
    /// Consecutive spans without gaps.
    pub spans: Vec<Span>,
    /// Every definition the job had.
    pub specs: Vec<JobSpec>,
    /// Times of changes: from the request to the acknowledgement.
    pub changes: Vec<(Ms, Ms)>,
    /// Time at which it was, perhaps, deleted.
    pub deleted: Option<Ms>,
}

/// A part of the timeline: after `after`, up to and including `until`.
pub struct Span {
    /// Start, exclusive.
    pub after: Ms,
    /// End, inclusive.
    pub until: Ms,
    /// State of the job.
    pub state: State,
}

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Stopped.
    Off,
    /// Started, with the definition of this index.
    On(usize),
    /// Being changed, so the state is unknown.
    Unsure,
}

impl Timeline {
    /// Builds the timeline from the client's requests and the responses.
    pub fn new(spec: &JobSpec, ops: &[&OperationRecord]) -> Self {
        let mut timeline =
            Timeline { spans: Vec::new(), specs: vec![spec.clone()], changes: Vec::new(), deleted: None };
        let (mut from, mut state, mut current) = (START - 1, State::Off, 0);
        for op in ops {
            if op.refused && op.tries == 1 {
                continue;
            }
            let old = state;
            let sets = match &op.operation {
                Operation::Trigger(_) => continue,
                Operation::Start => State::On(current),
                Operation::Stop => State::Off,
                Operation::Delete => {
                    timeline.deleted = Some(op.asked);
                    State::Off
                }
                Operation::Edit(spec) => {
                    // A schedule that has ended stops the job, and the client is not notified.
                    let ends = matches!(timeline.specs[current].schedule, cron::Schedule::Once { .. });
                    timeline.specs.push((**spec).clone());
                    current = timeline.specs.len() - 1;
                    match old {
                        State::On(_) if !ends => State::On(current),
                        State::Off => State::Off,
                        _ => State::Unsure,
                    }
                }
            };
            let acked = op.done.map_or(Ms::MAX, |done| done.acked);
            timeline.changes.push((op.asked, acked));
            // Tried more than once: the first attempt may have taken effect at any time.
            let certain_until = match op.done {
                Some(done) if op.tries == 1 => done.at,
                _ => op.asked,
            };
            timeline.push(from, certain_until, old);
            // Runs that a stop finds in flight may still arrive until it is acknowledged.
            let unsure_until = match (op.done, sets) {
                (None, _) => Ms::MAX,
                (Some(done), State::Off) => done.acked,
                (Some(done), _) => done.at,
            };
            timeline.push(certain_until, unsure_until, State::Unsure);
            (from, state) = (unsure_until, sets);
        }
        timeline.push(from, Ms::MAX, state);
        timeline
    }

    fn push(&mut self, after: Ms, until: Ms, state: State) {
        if after < until {
            self.spans.push(Span { after, until, state });
        }
    }

    /// The state at a time.
    pub fn at(&self, instant: Ms) -> State {
        let span = self.spans.iter().find(|span| span.after < instant && instant <= span.until);
        span.map_or(State::Off, |span| span.state)
    }

    /// Whether the job may have been fired for this scheduled time.
    pub fn may_fire_at(&self, instant: Ms) -> bool {
        match self.at(instant) {
            State::Off => false,
            State::On(spec) if is_instant(&self.specs[spec], instant) => true,
            // Runs that a change finds in flight may still arrive until it is acknowledged.
            State::On(_)
                if !self.changes.iter().any(|(asked, acked)| *asked <= instant && instant <= *acked) =>
            {
                false
            }
            State::On(_) => self.specs.iter().any(|spec| is_instant(spec, instant)),
            State::Unsure => self.specs.iter().any(|spec| is_instant(spec, instant)),
        }
    }

    /// Whether the job was being changed in this period or shortly before.
    pub fn is_changing(&self, from: Ms, until: Ms) -> bool {
        self.changes.iter().any(|(asked, acked)| *asked <= until && from <= acked.saturating_add(1_000))
    }
}

/// Whether the schedule has this scheduled time. A fixed delay may have any.
pub fn is_instant(spec: &JobSpec, instant: Ms) -> bool {
    match spec.schedule {
        cron::Schedule::FixedDelay { .. } => true,
        _ => spec.next_after(Timestamp::from_millis(instant - 1)) == Some(Timestamp::from_millis(instant)),
    }
}

/// Scheduled times after `after`, up to and including `until`.
pub fn instants(spec: &JobSpec, after: Ms, until: Ms) -> impl Iterator<Item = Ms> {
    let next = |after: Ms| spec.next_after(Timestamp::from_millis(after)).map(Timestamp::as_millis);
    std::iter::successors(next(after), move |instant| next(*instant))
        .take_while(move |instant| *instant <= until)
}
