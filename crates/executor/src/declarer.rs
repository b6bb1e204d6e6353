//! Declares this executor's handlers, and the jobs that call them, to the centre.

use std::collections::BTreeMap;

use protocol::declare::{Declaration, DeclaredJob, JOBS_MAX, Outcome, Settled};

use crate::centre::{CallError, Centre, Heard};

/// The declaration, and whether the centre has received it.
pub(crate) struct Declarer {
    address: String,
    handlers: Vec<String>,
    jobs: Vec<DeclaredJob>,
    /// The centre has received the declaration.
    is_declared: bool,
    /// It was logged that the centre does not accept declarations.
    is_noted: bool,
}

impl Declarer {
    pub fn new(address: &str, handlers: Vec<String>, jobs: Vec<DeclaredJob>) -> Declarer {
        Declarer { address: address.to_owned(), handlers, jobs, is_declared: false, is_noted: false }
    }

    /// Sends the declaration again next time, because the centre may have lost it.
    pub fn forget(&mut self) {
        self.is_declared = false;
    }

    /// Sends the declaration unless the centre has received it. A centre that does not support it, such as XXL-JOB,
    /// is no error.
    pub async fn declare(&mut self, centre: &Centre) -> Result<(), CallError> {
        if self.is_declared {
            return Ok(());
        }
        // Handlers are declared even if there are no jobs.
        let calls = self.jobs.len().div_ceil(JOBS_MAX).max(1);
        for call in 0..calls {
            let jobs = self.jobs.iter().skip(call * JOBS_MAX).take(JOBS_MAX).cloned().collect();
            let (address, handlers) = (self.address.clone(), self.handlers.clone());
            match centre.declare(&Declaration { address, handlers, jobs }).await? {
                Heard::Settled(settled) => say(&settled),
                Heard::Refused(why) => {
                    self.note_refusal(&why);
                    break;
                }
            }
        }
        self.is_declared = true;
        Ok(())
    }

    fn note_refusal(&mut self, why: &str) {
        if self.jobs.is_empty() || std::mem::replace(&mut self.is_noted, true) {
            tracing::debug!(why, "the scheduling centre does not support declared jobs");
            return;
        }
        tracing::info!(
            jobs = names(self.jobs.iter().map(|job| job.handler.as_str())),
            why,
            "this scheduling centre does not support declared jobs, like XXL-JOB; add these jobs manually"
        );
    }
}

/// Logs the results of the declared jobs, errors grouped by reason.
fn say(settled: &[Settled]) {
    let mut refused: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Settled { handler, outcome, overridden } in settled {
        match outcome {
            Outcome::Created => {
                tracing::info!(handler, "declared job created")
            }
            Outcome::Changed => {
                tracing::info!(handler, "declared job updated")
            }
            Outcome::Unchanged => {}
            Outcome::Refused { why } => refused.entry(why).or_default().push(handler),
        }
        if !overridden.is_empty() {
            tracing::info!(
                handler,
                overridden = overridden.join(", "),
                "these fields of a declared job were edited in the scheduling centre; the edited values are \
                 kept"
            );
        }
    }
    for (why, handlers) in refused {
        tracing::warn!(jobs = names(handlers), why, "the scheduling centre rejected the declared jobs");
    }
}

fn names<'a>(handlers: impl IntoIterator<Item = &'a str>) -> String {
    handlers.into_iter().collect::<Vec<_>>().join(", ")
}
