//! When a job's schedule was in force, as far as its client can know.

use cron::Timestamp;
use engine::JobSpec;

use crate::sim::clock::{Ms, START};
use crate::sim::evidence::{Op, Wish};

/// The life of a job.
pub struct Timeline {
    /// One after the other, without gaps.
    pub spans: Vec<Span>,
    /// Every definition it had.
    pub specs: Vec<JobSpec>,
    /// When somebody was changing it: from asking to the acknowledgement.
    pub changes: Vec<(Ms, Ms)>,
    /// When it was, perhaps, deleted.
    pub deleted: Option<Ms>,
}

/// A part of it: after `after`, up to and including `until`.
pub struct Span {
    /// Exclusive.
    pub after: Ms,
    /// Inclusive.
    pub until: Ms,
    /// What held then.
    pub state: State,
}

/// What held for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was stopped.
    Off,
    /// It was started, with the definition of this number.
    On(usize),
    /// It was being changed, so nobody can say.
    Unsure,
}

impl Timeline {
    /// From what the client asked and heard.
    pub fn new(spec: &JobSpec, ops: &[&Op]) -> Self {
        let mut timeline =
            Timeline { spans: Vec::new(), specs: vec![spec.clone()], changes: Vec::new(), deleted: None };
        let (mut from, mut state, mut current) = (START - 1, State::Off, 0);
        for op in ops {
            if op.refused && op.tries == 1 {
                continue;
            }
            let old = state;
            let sets = match &op.wish {
                Wish::Trigger(_) => continue,
                Wish::Start => State::On(current),
                Wish::Stop => State::Off,
                Wish::Delete => {
                    timeline.deleted = Some(op.asked);
                    State::Off
                }
                Wish::Edit(spec) => {
                    // A schedule that has come to its end stops the job, and nobody tells the client when.
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
            // Tried more than once: the first try may have done it at any time.
            let certain_until = match op.done {
                Some(done) if op.tries == 1 => done.at,
                _ => op.asked,
            };
            timeline.push(from, certain_until, old);
            // What a stop finds on its way out may still arrive until it is acknowledged.
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

    /// What held at an instant.
    pub fn at(&self, instant: Ms) -> State {
        let span = self.spans.iter().find(|span| span.after < instant && instant <= span.until);
        span.map_or(State::Off, |span| span.state)
    }

    /// Whether the job may have been fired for this instant.
    pub fn may_fire_at(&self, instant: Ms) -> bool {
        match self.at(instant) {
            State::Off => false,
            State::On(spec) if is_instant(&self.specs[spec], instant) => true,
            // Until a change is acknowledged, what it finds on its way out may still arrive.
            State::On(_)
                if !self.changes.iter().any(|(asked, acked)| *asked <= instant && instant <= *acked) =>
            {
                false
            }
            State::On(_) => self.specs.iter().any(|spec| is_instant(spec, instant)),
            State::Unsure => self.specs.iter().any(|spec| is_instant(spec, instant)),
        }
    }

    /// Whether somebody was changing the job, or had just, or would soon.
    pub fn is_changing(&self, from: Ms, until: Ms) -> bool {
        self.changes.iter().any(|(asked, acked)| *asked <= until && from <= acked.saturating_add(1_000))
    }
}

/// Whether the schedule has this instant. A delay has any.
pub fn is_instant(spec: &JobSpec, instant: Ms) -> bool {
    match spec.schedule {
        cron::Schedule::FixedDelay { .. } => true,
        _ => spec.next_after(Timestamp::from_millis(instant - 1)) == Some(Timestamp::from_millis(instant)),
    }
}

/// The instants of a schedule after `after`, up to and including `until`.
pub fn instants(spec: &JobSpec, after: Ms, until: Ms) -> impl Iterator<Item = Ms> {
    let next = |after: Ms| spec.next_after(Timestamp::from_millis(after)).map(Timestamp::as_millis);
    std::iter::successors(next(after), move |instant| next(*instant))
        .take_while(move |instant| *instant <= until)
}
