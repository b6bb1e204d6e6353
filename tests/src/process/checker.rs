//! Compares the runs that executors accepted with the schedules of their jobs.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use anyhow::Result;
use engine::policy::{Misfire, Route};
use engine::{Disposition, JobId, RunState, Store as _};
use store::Database;

use super::journal::{Entry, Journal};
use super::workload::Workload;

/// Result of the comparison. Counts fires, and every shard of broadcast fires.
#[derive(Clone, Debug, Default)]
pub struct Check {
    /// Demanded by the schedules.
    pub due: usize,
    /// Accepted, duplicates counted once.
    pub sent: usize,
    /// Accepted more than once.
    pub doubled: usize,
    /// Accepted, but not demanded by a schedule.
    pub phantoms: usize,
    /// Accepted before the scheduled time.
    pub early: usize,
    /// Never accepted, and skipped by the misfire policy according to the database.
    pub skipped: usize,
    /// Never accepted; the database records the reason.
    pub failed: usize,
    /// Never accepted; the database records no reason.
    pub silent: usize,
    /// Accepted, with a result that was not confirmed.
    pub unacknowledged: usize,
    /// The result was confirmed, but the database does not have it.
    pub forgotten: usize,
    /// Job id and scheduled time of fires that were never accepted.
    pub missing: Vec<(i64, i64)>,
    /// Descriptions of the first problems.
    pub findings: Vec<String>,
}

impl Check {
    /// Compares the journals alone.
    pub fn of(workload: &Workload, executors: usize, journal: &Journal) -> Check {
        let mut check = Check::default();
        let mut taken: HashMap<(i64, i64, i32), Vec<Entry>> = HashMap::new();
        for entry in journal.entries() {
            check.early += usize::from(entry.lateness_us() < 0);
            taken.entry((entry.job, entry.scheduled_ms, entry.shard)).or_default().push(entry);
        }
        let acknowledged = journal.acknowledged();
        check.unacknowledged =
            taken.values().flatten().filter(|entry| !acknowledged.contains(&entry.run)).count();
        for job in workload.ids() {
            let shards = match workload.template(job).route {
                Route::Broadcast => executors as i32,
                _ => 1,
            };
            for instant in workload.instants(job) {
                for shard in 0..shards {
                    check.due += 1;
                    match taken.remove(&(job, instant, shard)) {
                        None => check.missing.push((job, instant)),
                        Some(entries) => {
                            check.sent += 1;
                            if entries.len() > 1 {
                                check.doubled += 1;
                                check.find(|| {
                                    format!(
                                        "job {job} at {instant} was taken {} times: {entries:?}",
                                        entries.len()
                                    )
                                });
                            }
                        }
                    }
                }
            }
        }
        check.phantoms = taken.len();
        for entries in taken.values() {
            check.find(|| format!("no schedule demands {entries:?}"));
        }
        check
    }

    /// Reads from the database why fires were never accepted, and whether it has the results it confirmed.
    pub async fn explain(&mut self, workload: &Workload, journal: &Journal, store: &Database) -> Result<()> {
        let acknowledged = journal.acknowledged();
        let mut known = 0;
        // Jobs that were not due have nothing to explain.
        let concerned: BTreeSet<i64> = journal
            .entries()
            .iter()
            .map(|entry| entry.job)
            .chain(self.missing.iter().map(|(job, _)| *job))
            .collect();
        for job in concerned {
            let missing: Vec<i64> =
                self.missing.iter().filter(|(of, _)| *of == job).map(|(_, instant)| *instant).collect();
            let (mut runs, mut after) = (Vec::new(), None);
            loop {
                let page = store.runs(JobId(job), after, PAGE).await?;
                after = page.last().map(|run| run.id);
                let is_last = page.len() < PAGE;
                runs.extend(page);
                if is_last {
                    break;
                }
            }
            for run in runs.iter().filter(|run| acknowledged.contains(&run.id.0)) {
                known += 1;
                if run.state != RunState::Succeeded {
                    self.forgotten += 1;
                    self.find(|| {
                        format!("run {} was reported and is {:?}: {:?}", run.id, run.state, run.message)
                    });
                }
            }
            if missing.is_empty() {
                continue;
            }
            let history = store.history(JobId(job), None, PAGE).await?;
            for instant in missing {
                let told = history.iter().find(|entry| {
                    (entry.unsent.first.as_millis()..=entry.unsent.last.as_millis()).contains(&instant)
                });
                // The log stores whole seconds.
                let logged = runs.iter().find(|run| run.scheduled_at.as_millis() / 1_000 == instant / 1_000);
                let may_skip = workload.template(job).misfire == Misfire::Skip;
                match (told, logged) {
                    (Some(entry), _)
                        if may_skip && entry.unsent.disposition == Disposition::MisfireSkipped =>
                    {
                        self.skipped += 1;
                    }
                    (None, None) => {
                        self.silent += 1;
                        self.find(|| format!("job {job} at {instant} was never taken, and nothing says why"));
                    }
                    (told, logged) => {
                        self.failed += 1;
                        let why = told.map(|entry| &entry.unsent.reason);
                        let log = logged.map(|run| (run.state, &run.message));
                        self.find(|| format!("job {job} at {instant} was never taken: {why:?}, {log:?}"));
                    }
                }
            }
        }
        if known < acknowledged.len() {
            self.forgotten += acknowledged.len() - known;
            self.find(|| format!("{} acknowledged results have no run", acknowledged.len() - known));
        }
        Ok(())
    }

    /// Never accepted although no policy allows it.
    pub fn lost(&self) -> usize {
        self.missing.len() - self.skipped
    }

    /// Whether all guarantees hold with well-behaved executors.
    pub fn is_clean(&self) -> bool {
        self.lost() == 0 && self.is_safe()
    }

    /// Whether all guarantees hold with any executors: fires they did not accept are on record.
    pub fn is_safe(&self) -> bool {
        self.doubled + self.phantoms + self.early + self.silent + self.forgotten + self.unacknowledged == 0
    }

    fn find(&mut self, finding: impl FnOnce() -> String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding());
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} due, {} sent, {} lost ({} recorded as failed), {} skipped by policy, {} doubled, {} silent, {} phantoms, {} early, {} results unacknowledged, {} forgotten",
            self.due,
            self.sent,
            self.lost(),
            self.failed,
            self.skipped,
            self.doubled,
            self.silent,
            self.phantoms,
            self.early,
            self.unacknowledged,
            self.forgotten
        )?;
        self.findings.iter().try_for_each(|finding| write!(f, "\n  {finding}"))
    }
}

/// Lateness of requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// Number of requests.
    pub count: usize,
    /// Median, in milliseconds.
    pub p50: f64,
    /// 99th percentile, in milliseconds.
    pub p99: f64,
    /// Maximum, in milliseconds.
    pub max: f64,
}

impl Timing {
    /// Lateness of requests with a scheduled time in this range of milliseconds.
    pub fn of(journal: &Journal, scheduled_ms: std::ops::Range<i64>) -> Timing {
        let entries = journal.entries();
        let entries = entries.iter().filter(|entry| scheduled_ms.contains(&entry.scheduled_ms));
        let mut late: Vec<f64> = entries.map(|entry| entry.lateness_us() as f64 / 1_000.0).collect();
        late.sort_by(f64::total_cmp);
        Timing {
            count: late.len(),
            p50: percentile(&late, 50.0),
            p99: percentile(&late, 99.0),
            max: late.last().copied().unwrap_or(0.0),
        }
    }
}

/// Percentile of sorted numbers.
pub fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let place = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
}

const PAGE: usize = 1_000;
const FINDINGS_MAX: usize = 10;
