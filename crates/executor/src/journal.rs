//! Append-only file of accepted runs and unconfirmed outcomes, which must survive a crash.
//!
//! A run is on disk before the centre receives "accepted", and an outcome is on disk before it is sent. So after a
//! crash no run is executed twice and no outcome is lost: runs that were in progress are found at the next start
//! and reported as failed.
//!
//! One thread writes. While it waits for the disk, further lines gather and are written together (group commit), so
//! a hundred runs cost one `fsync`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use timer::{Clock, Timestamp};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, oneshot};

use crate::error::Error;
use crate::ledger::{Ledger, Memory, Snapshot, Standing};
use crate::record::Record;
use crate::run::{Outcome, Report};

/// Shared handle; clones refer to the same journal.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    shared: Arc<Shared>,
    entries: mpsc::Sender<Entry>,
}

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    ledger: Mutex<Ledger>,
    /// Notified when the centre confirms a run.
    acknowledged: Notify,
}

impl Journal {
    /// Reads the journal of an earlier process, reports its unfinished runs as failed, and continues it. Outcomes
    /// go to `reports` once they are on disk.
    pub fn open(
        directory: &Path,
        memory: Memory,
        clock: Arc<dyn Clock>,
        reports: UnboundedSender<Report>,
    ) -> Result<Journal, Error> {
        let explain = |why| Error::Directory { path: directory.to_owned(), why };
        fs::create_dir_all(directory).map_err(explain)?;
        let lock = lock(directory)?;
        let path = directory.join("journal");
        let mut ledger = Ledger::new(memory);
        replay(&path, &mut ledger).map_err(explain)?;
        for (run_id, triggered_at) in ledger.unfinished() {
            let outcome = Outcome::Failed(INTERRUPTED.to_owned());
            ledger.note(Record::Finished(Report { run_id, triggered_at, outcome }));
        }
        // Also drops a line that the crash left incomplete, and stores the outcomes decided above.
        let (file, length) = rewrite(&path, &ledger.snapshot()).map_err(explain)?;
        for report in ledger.unacknowledged() {
            // The receiver is created just before and outlives this call.
            let _ = reports.send(report);
        }
        let shared = Arc::new(Shared { clock, ledger: Mutex::new(ledger), acknowledged: Notify::new() });
        let (entries, received) = mpsc::channel();
        let writer = Writer {
            path,
            file,
            length,
            compact_at: compact_at(length),
            shared: Arc::clone(&shared),
            reports,
            _lock: lock,
        };
        thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(&received))
            .map_err(explain)?;
        Ok(Journal { shared, entries })
    }

    pub fn standing(&self, run_id: i64) -> Standing {
        self.shared.ledger().standing(run_id)
    }

    /// Records a run as accepted, in memory immediately and on disk when the returned future completes. If writing
    /// fails, the run counts as new again.
    pub fn accept(
        &self,
        run_id: i64,
        triggered_at: Timestamp,
    ) -> impl Future<Output = io::Result<()>> + use<> {
        let record = Record::Accepted { run_id, triggered_at };
        self.shared.ledger().note(record.clone());
        let (reply, written) = oneshot::channel();
        let sent = self.entries.send(Entry::Accepted(record, reply));
        let shared = Arc::clone(&self.shared);
        async move {
            let result = match sent {
                Ok(()) => written.await.unwrap_or_else(|_| Err(closed())),
                Err(_) => Err(closed()),
            };
            if result.is_err() {
                shared.ledger().forget(run_id);
            }
            result
        }
    }

    /// Records an outcome; it goes to the reporter as soon as it is on disk.
    pub fn finish(&self, report: Report) {
        self.shared.ledger().note(Record::Finished(report.clone()));
        // The journal is closed only in a stopped executor; the next start reports the run as interrupted.
        let _ = self.entries.send(Entry::Finished(report));
    }

    /// Records that the centre has confirmed these runs.
    pub fn acknowledge(&self, run_ids: impl IntoIterator<Item = i64>) {
        let at = self.shared.clock.now();
        for run_id in run_ids {
            let record = Record::Done { run_id, at };
            self.shared.ledger().note(record.clone());
            let _ = self.entries.send(Entry::Done(record));
        }
        self.shared.acknowledged.notify_waiters();
    }

    /// Number of runs not yet confirmed by the centre.
    pub fn open_count(&self) -> usize {
        self.shared.ledger().open_count()
    }

    /// Waits until the centre has confirmed every run.
    pub async fn settled(&self) {
        loop {
            let acknowledged = self.shared.acknowledged.notified();
            tokio::pin!(acknowledged);
            acknowledged.as_mut().enable();
            if self.open_count() == 0 {
                return;
            }
            acknowledged.await;
        }
    }

    /// Writes the remaining entries and releases the directory.
    pub async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.entries.send(Entry::Close(reply)).is_ok() {
            // An error means that the thread has ended and has released the directory.
            let _ = closed.await;
        }
    }
}

impl Shared {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // No user code runs under the lock, so the data is consistent even after a panic.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Outcome of a run interrupted by a crash or kill of the process.
const INTERRUPTED: &str =
    "the executor was restarted while this run was waiting or running; it was not run again";

fn closed() -> io::Error {
    io::Error::other("the executor has stopped")
}

enum Entry {
    Accepted(Record, oneshot::Sender<io::Result<()>>),
    Finished(Report),
    Done(Record),
    Close(oneshot::Sender<()>),
}

/// The writer thread.
struct Writer {
    path: PathBuf,
    file: File,
    /// Length of the file that is known to be complete.
    length: u64,
    compact_at: u64,
    shared: Arc<Shared>,
    reports: UnboundedSender<Report>,
    _lock: File,
}

impl Writer {
    fn run(mut self, entries: &mpsc::Receiver<Entry>) {
        let mut batch = Vec::new();
        loop {
            // Entries that the disk did not take are retried, with or without new ones.
            let next = if batch.is_empty() {
                entries.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected)
            } else {
                entries.recv_timeout(DISK_RETRY)
            };
            match next {
                Ok(entry) => batch.push(entry),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
            batch.extend(entries.try_iter().take(BATCH_MAX));
            batch = self.commit(batch);
            if let Some(Entry::Close(_)) = batch.last() {
                drop(self);
                // Answered only now, so that the next process finds the directory unlocked.
                if let Some(Entry::Close(reply)) = batch.pop() {
                    let _ = reply.send(());
                }
                return;
            }
        }
    }

    /// Writes entries and notifies the callers. Returns the entries to retry; a `Close` comes last.
    fn commit(&mut self, batch: Vec<Entry>) -> Vec<Entry> {
        let mut lines = String::new();
        for entry in &batch {
            match entry {
                Entry::Accepted(record, _) | Entry::Done(record) => record.write(&mut lines),
                Entry::Finished(report) => Record::Finished(report.clone()).write(&mut lines),
                Entry::Close(_) => {}
            }
        }
        let written = self.append(&lines);
        if let Err(error) = &written {
            tracing::error!(path = %self.path.display(), %error, "failed to write the journal; rejecting runs and retrying");
        }
        let mut rest = Vec::new();
        let mut close = None;
        for entry in batch {
            match (entry, &written) {
                (Entry::Close(reply), _) => close = Some(Entry::Close(reply)),
                (Entry::Accepted(_, reply), Ok(())) => drop(reply.send(Ok(()))),
                (Entry::Accepted(_, reply), Err(error)) => {
                    drop(reply.send(Err(io::Error::new(error.kind(), error.to_string()))));
                }
                // If the reporter is gone, the report is sent after the next start.
                (Entry::Finished(report), Ok(())) => drop(self.reports.send(report)),
                (Entry::Done(_), Ok(())) => {}
                (entry, Err(_)) => rest.push(entry),
            }
        }
        rest.extend(close);
        rest
    }

    fn append(&mut self, lines: &str) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(lines.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Removes an incomplete line, so that the next one starts at the beginning of a line.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += lines.len() as u64;
        if self.length > self.compact_at {
            self.compact();
        }
        Ok(())
    }

    fn compact(&mut self) {
        // Records noted after this point are appended later.
        let snapshot = self.shared.ledger().snapshot();
        match rewrite(&self.path, &snapshot) {
            Ok((file, length)) => (self.file, self.length) = (file, length),
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "failed to compact the journal; it keeps growing");
            }
        }
        self.compact_at = compact_at(self.length);
    }
}

/// Retry interval while the disk is full; results wait in memory.
const DISK_RETRY: Duration = Duration::from_millis(200);
/// Entries per `fsync`: enough that the `fsync` is not the bottleneck, few enough that no caller waits long.
const BATCH_MAX: usize = 10_000;

/// Compacts when the file has doubled, which keeps the cost of rewriting proportional; small files are not compacted.
fn compact_at(length: u64) -> u64 {
    (length * 2).max(16 * 1024 * 1024)
}

/// Allows one process per directory: two would each execute the runs the other has accepted.
fn lock(directory: &Path) -> Result<File, Error> {
    let path = directory.join("lock");
    let explain = |why| Error::Directory { path: path.clone(), why };
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(explain)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(Error::DirectoryTaken { path: directory.to_owned() }),
        Err(fs::TryLockError::Error(why)) => Err(explain(why)),
    }
}

fn replay(path: &Path, ledger: &mut Ledger) -> io::Result<()> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut reader = BufReader::new(file);
    let (mut line, mut number) = (Vec::new(), 0);
    while reader.read_until(b'\n', &mut line)? > 0 {
        number += 1;
        let text = line.strip_suffix(b"\n").unwrap_or_default();
        match str::from_utf8(text).ok().and_then(Record::read) {
            Some(record) => ledger.note(record),
            None => {
                tracing::warn!(path = %path.display(), number, "skipped an incomplete line of the journal")
            }
        }
        line.clear();
    }
    Ok(())
}

/// Replaces the journal atomically.
fn rewrite(path: &Path, snapshot: &Snapshot) -> io::Result<(File, u64)> {
    let lines = snapshot.lines();
    let fresh = path.with_extension("new");
    let _ = fs::remove_file(&fresh);
    let mut options = OpenOptions::new();
    // Append mode: writing continues at the end of the file, also after it was truncated.
    options.create_new(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Results may be confidential.
        options.mode(0o600);
    }
    let mut file = options.open(&fresh)?;
    file.write_all(lines.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    #[cfg(unix)]
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok((file, lines.len() as u64))
}

#[cfg(test)]
mod tests {
    use timer::testing::ManualClock;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    #[tokio::test]
    async fn what_was_under_way_is_reported_as_failed_once() {
        let directory = tempfile::tempdir().unwrap();
        let (journal, mut reports) = open(directory.path());
        for run_id in 1..=3 {
            journal.accept(run_id, at(0)).await.unwrap();
        }
        journal.finish(Report { run_id: 2, triggered_at: at(0), outcome: Outcome::Succeeded(None) });
        assert_eq!(reports.recv().await.unwrap().run_id, 2);
        journal.acknowledge([2]);
        journal.close().await;

        let (journal, mut reports) = open(directory.path());
        assert_eq!(
            [1, 2, 3, 4].map(|id| journal.standing(id)),
            [Standing::Unacknowledged, Standing::Done, Standing::Unacknowledged, Standing::New]
        );
        for run_id in [1, 3] {
            let report = reports.recv().await.unwrap();
            assert_eq!((report.run_id, report.outcome), (run_id, Outcome::Failed(INTERRUPTED.to_owned())));
        }
        assert!(reports.try_recv().is_err());
        journal.acknowledge([1, 3]);
        journal.settled().await;
        journal.close().await;

        let (journal, mut reports) = open(directory.path());
        assert!(reports.try_recv().is_err());
        assert_eq!(journal.standing(1), Standing::Done);
    }

    #[tokio::test]
    async fn a_torn_line_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let (journal, _reports) = open(directory.path());
        journal.accept(1, at(0)).await.unwrap();
        journal.accept(2, at(0)).await.unwrap();
        journal.close().await;
        let path = directory.path().join("journal");
        let length = fs::metadata(&path).unwrap().len();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length - 3).unwrap();
        let (journal, _reports) = open(directory.path());
        assert_eq!([1, 2].map(|id| journal.standing(id)), [Standing::Unacknowledged, Standing::New]);
    }

    #[tokio::test]
    async fn a_directory_has_one_owner() {
        let directory = tempfile::tempdir().unwrap();
        let (journal, _reports) = open(directory.path());
        let second =
            Journal::open(directory.path(), Memory::default(), clock(), unbounded_channel().0).unwrap_err();
        assert!(matches!(second, Error::DirectoryTaken { .. }), "{second}");
        journal.close().await;
        open(directory.path());
        // A closed journal accepts no runs.
        assert!(journal.accept(9, at(0)).await.is_err());
        assert_eq!(journal.standing(9), Standing::New);
    }

    #[tokio::test]
    async fn a_long_journal_is_rewritten_short() {
        let directory = tempfile::tempdir().unwrap();
        let memory = Memory { runs: 10, age: Duration::MAX };
        let (sender, mut reports) = unbounded_channel();
        let journal = Journal::open(directory.path(), memory, clock(), sender).unwrap();
        let message = "x".repeat(50_000);
        for run_id in 0..400 {
            journal.accept(run_id, at(0)).await.unwrap();
            let outcome = Outcome::Succeeded(Some(message.clone()));
            journal.finish(Report { run_id, triggered_at: at(0), outcome });
            reports.recv().await.unwrap();
            journal.acknowledge([run_id]);
        }
        journal.close().await;
        let length = fs::metadata(directory.path().join("journal")).unwrap().len();
        assert!(length < 8_000_000, "{length}");
        let (journal, _reports) = open(directory.path());
        assert_eq!([399, 400].map(|id| journal.standing(id)), [Standing::Done, Standing::New]);
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn a_disk_that_does_not_keep_what_is_written_refuses_runs_and_keeps_outcomes() {
        // `/dev/full` rejects writes; `/dev/null` accepts them but cannot be synced.
        for disk in ["/dev/full", "/dev/null"] {
            let directory = tempfile::tempdir().unwrap();
            let (reports, mut reported) = unbounded_channel();
            let shared = Arc::new(Shared {
                clock: clock(),
                ledger: Mutex::new(Ledger::new(Memory::default())),
                acknowledged: Notify::new(),
            });
            let mut writer = Writer {
                path: directory.path().join("journal"),
                file: OpenOptions::new().write(true).open(disk).unwrap(),
                length: 0,
                compact_at: u64::MAX,
                shared,
                reports,
                _lock: lock(directory.path()).unwrap(),
            };
            let report = Report { run_id: 1, triggered_at: at(0), outcome: Outcome::TimedOut };
            let (reply, written) = oneshot::channel();
            let taken = Entry::Accepted(Record::Accepted { run_id: 2, triggered_at: at(0) }, reply);
            let rest = writer.commit(vec![Entry::Finished(report.clone()), taken]);
            assert!(written.await.unwrap().is_err(), "{disk}");
            assert_eq!(rest.len(), 1, "{disk}");
            assert!(reported.try_recv().is_err(), "{disk}");
            // The disk has space again.
            writer.file = File::create(&writer.path).unwrap();
            assert!(writer.commit(rest).is_empty());
            assert_eq!(reported.recv().await.unwrap(), report);
        }
    }

    fn open(directory: &Path) -> (Journal, UnboundedReceiver<Report>) {
        let (sender, reports) = unbounded_channel();
        (Journal::open(directory, Memory::default(), clock(), sender).unwrap(), reports)
    }

    fn clock() -> Arc<dyn Clock> {
        Arc::new(ManualClock::new(at(0)))
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }
}
