//! Which runs this executor has ever taken, and how far each has come. What the journal says, in memory.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use timer::Timestamp;

use crate::record::Record;
use crate::run::Report;

/// How far a run has come here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) enum Standing {
    /// Never heard of.
    New,
    /// Waiting or running.
    Open,
    /// Over, and the centre has not confirmed that it knows.
    Unacknowledged,
    /// Over, and the centre knows.
    Done,
}

/// How long runs that are over are remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub runs: usize,
    pub age: Duration,
}

impl Default for Memory {
    /// Ids cost about 40 bytes each. A centre that repeats itself does so within minutes, an operator within days.
    fn default() -> Self {
        Memory { runs: 1_000_000, age: Duration::from_secs(7 * 86_400) }
    }
}

#[derive(Debug)]
pub(crate) struct Ledger {
    memory: Memory,
    /// Every run that is not done. Its size is what the centre still has to hear of.
    open: HashMap<i64, Record>,
    done: HashSet<i64>,
    /// The done ones, the first to be forgotten in front.
    order: VecDeque<(i64, Timestamp)>,
}

impl Ledger {
    pub fn new(memory: Memory) -> Ledger {
        Ledger { memory, open: HashMap::new(), done: HashSet::new(), order: VecDeque::new() }
    }

    pub fn standing(&self, run_id: i64) -> Standing {
        match self.open.get(&run_id) {
            Some(Record::Finished(_)) => Standing::Unacknowledged,
            Some(_) => Standing::Open,
            None if self.done.contains(&run_id) => Standing::Done,
            None => Standing::New,
        }
    }

    /// Takes note. A run only goes forward, so hearing of a step twice changes nothing.
    pub fn note(&mut self, record: Record) {
        match record {
            Record::Accepted { run_id, .. } if self.standing(run_id) == Standing::New => {
                self.open.insert(run_id, record);
            }
            Record::Finished(ref report) if self.standing(report.run_id) <= Standing::Open => {
                self.open.insert(report.run_id, record);
            }
            Record::Done { run_id, at } => {
                self.open.remove(&run_id);
                if self.done.insert(run_id) {
                    self.order.push_back((run_id, at));
                }
                self.forget_old(at);
            }
            Record::Accepted { .. } | Record::Finished(_) => {}
        }
    }

    /// As if it had never been taken: it could not be written down.
    pub fn forget(&mut self, run_id: i64) {
        self.open.remove(&run_id);
    }

    /// How many runs the centre still has to hear of.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Runs that were taken and have no outcome.
    pub fn unfinished(&self) -> Vec<(i64, Timestamp)> {
        let unfinished = self.open.values().filter_map(|record| match record {
            Record::Accepted { run_id, triggered_at } => Some((*run_id, *triggered_at)),
            _ => None,
        });
        let mut unfinished: Vec<_> = unfinished.collect();
        unfinished.sort_unstable();
        unfinished
    }

    /// Outcomes the centre has not confirmed.
    pub fn unacknowledged(&self) -> Vec<Report> {
        let reports = self.open.values().filter_map(|record| match record {
            Record::Finished(report) => Some(report.clone()),
            _ => None,
        });
        let mut reports: Vec<_> = reports.collect();
        reports.sort_unstable_by_key(|report| report.run_id);
        reports
    }

    /// What a new journal has to say. Quick, since everyone waits meanwhile.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { done: self.order.clone(), open: self.open.values().cloned().collect() }
    }

    fn forget_old(&mut self, now: Timestamp) {
        while let Some((run_id, at)) = self.order.front().copied() {
            if self.order.len() <= self.memory.runs && now.duration_since(at) <= self.memory.age {
                break;
            }
            self.order.pop_front();
            self.done.remove(&run_id);
        }
    }
}

/// A ledger at one moment.
pub(crate) struct Snapshot {
    done: VecDeque<(i64, Timestamp)>,
    open: Vec<Record>,
}

impl Snapshot {
    /// The lines of a journal that says the same.
    pub fn lines(&self) -> String {
        let mut lines = String::new();
        for (run_id, at) in &self.done {
            Record::Done { run_id: *run_id, at: *at }.write(&mut lines);
        }
        self.open.iter().for_each(|record| record.write(&mut lines));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Outcome;

    const MEMORY: Memory = Memory { runs: 2, age: Duration::from_secs(10) };

    #[test]
    fn a_run_only_goes_forward() {
        let mut ledger = Ledger::new(MEMORY);
        assert_eq!(ledger.standing(1), Standing::New);
        for _ in 0..2 {
            ledger.note(accepted(1));
            assert_eq!(ledger.standing(1), Standing::Open);
        }
        for _ in 0..2 {
            ledger.note(finished(1));
            ledger.note(accepted(1));
            assert_eq!(ledger.standing(1), Standing::Unacknowledged);
        }
        for _ in 0..2 {
            ledger.note(done(1, 0));
            ledger.note(accepted(1));
            ledger.note(finished(1));
            assert_eq!((ledger.standing(1), ledger.open_count()), (Standing::Done, 0));
        }
    }

    #[test]
    fn what_is_done_is_forgotten_by_number_and_by_age() {
        let mut ledger = Ledger::new(MEMORY);
        for run_id in 1..=3 {
            ledger.note(done(run_id, 0));
        }
        assert_eq!([1, 2, 3].map(|id| ledger.standing(id)), [Standing::New, Standing::Done, Standing::Done]);
        ledger.note(done(4, 10_001));
        assert_eq!([2, 3, 4].map(|id| ledger.standing(id)), [Standing::New, Standing::New, Standing::Done]);
    }

    #[test]
    fn its_lines_say_the_same() {
        let mut ledger = Ledger::new(MEMORY);
        [accepted(1), accepted(2), finished(2), done(3, 5)]
            .into_iter()
            .for_each(|record| ledger.note(record));
        let mut again = Ledger::new(MEMORY);
        ledger.snapshot().lines().lines().for_each(|line| again.note(Record::read(line).unwrap()));
        assert_eq!(again.unfinished(), ledger.unfinished());
        assert_eq!(again.unacknowledged(), ledger.unacknowledged());
        assert_eq!(again.standing(3), Standing::Done);
    }

    fn accepted(run_id: i64) -> Record {
        Record::Accepted { run_id, triggered_at: Timestamp::from_millis(7) }
    }

    fn finished(run_id: i64) -> Record {
        let triggered_at = Timestamp::from_millis(7);
        Record::Finished(Report { run_id, triggered_at, outcome: Outcome::TimedOut })
    }

    fn done(run_id: i64, millis: i64) -> Record {
        Record::Done { run_id, at: Timestamp::from_millis(millis) }
    }
}
