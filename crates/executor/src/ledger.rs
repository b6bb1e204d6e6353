//! In-memory copy of the journal: every run this executor has accepted, and its state.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use timer::Timestamp;

use crate::record::Record;
use crate::run::Report;

/// State of a run in this executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(crate) enum Standing {
    /// Not known.
    New,
    /// Waiting or running.
    Open,
    /// Finished, not yet confirmed by the centre.
    Unacknowledged,
    /// Finished and confirmed by the centre.
    Done,
}

/// How many finished runs are remembered, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub runs: usize,
    pub age: Duration,
}

impl Default for Memory {
    /// An id costs about 40 bytes. A centre repeats a run within minutes, an operator within days.
    fn default() -> Self {
        Memory { runs: 1_000_000, age: Duration::from_secs(7 * 86_400) }
    }
}

#[derive(Debug)]
pub(crate) struct Ledger {
    memory: Memory,
    /// Every run that is not done; its size is the number of runs not yet confirmed by the centre.
    open: HashMap<i64, Record>,
    done: HashSet<i64>,
    /// The done runs in the order in which they are forgotten.
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

    /// Applies a record. States only move forward, so a repeated record changes nothing.
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

    /// Removes a run that could not be written to the journal, as if it had never been accepted.
    pub fn forget(&mut self, run_id: i64) {
        self.open.remove(&run_id);
    }

    /// Number of runs not yet confirmed by the centre.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Accepted runs without an outcome.
    pub fn unfinished(&self) -> Vec<(i64, Timestamp)> {
        let unfinished = self.open.values().filter_map(|record| match record {
            Record::Accepted { run_id, triggered_at } => Some((*run_id, *triggered_at)),
            _ => None,
        });
        let mut unfinished: Vec<_> = unfinished.collect();
        unfinished.sort_unstable();
        unfinished
    }

    /// Outcomes not yet confirmed by the centre.
    pub fn unacknowledged(&self) -> Vec<Report> {
        let reports = self.open.values().filter_map(|record| match record {
            Record::Finished(report) => Some(report.clone()),
            _ => None,
        });
        let mut reports: Vec<_> = reports.collect();
        reports.sort_unstable_by_key(|report| report.run_id);
        reports
    }

    /// Copy for a new journal. Fast, because all other callers wait for the lock meanwhile.
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

/// Contents of a ledger at one moment.
pub(crate) struct Snapshot {
    done: VecDeque<(i64, Timestamp)>,
    open: Vec<Record>,
}

impl Snapshot {
    /// The lines of a journal with the same contents.
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
