//! Logs of runs: one file per run, one directory per day.
//!
//! A file is created with the first line, so a run without log lines costs nothing. Paths consist of numbers only,
//! and symbolic links are not followed, so no request can reach another file.

use std::fmt::{self, Display};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use timer::{Clock, Timestamp};

/// All run logs of an executor.
#[derive(Clone, Debug)]
pub(crate) struct RunLogs {
    base: PathBuf,
    zone: TimeZone,
    clock: Arc<dyn Clock>,
}

/// A page of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// Number of the last returned line, from 1; if no line is returned, number of the last line of the file.
    pub to: i32,
    pub text: String,
}

impl RunLogs {
    /// Opens the logs in `base`. Days begin at midnight in this machine's time zone, as in stock executors.
    pub fn new(base: PathBuf, clock: Arc<dyn Clock>) -> RunLogs {
        RunLogs { base, zone: TimeZone::try_system().unwrap_or(TimeZone::UTC), clock }
    }

    /// The log of a run. `heading` is written as the first line, together with the first line of the run.
    pub fn of(&self, run_id: i64, triggered_at: Timestamp, heading: String) -> RunLog {
        let sink = match self.path(run_id, triggered_at) {
            Some(path) => Sink::Unopened { path, heading },
            None => Sink::Closed,
        };
        RunLog::new(sink, self.zone.clone(), Arc::clone(&self.clock))
    }

    /// Lines from number `from` on; `None` if the run has no log. Blocks.
    pub fn page(&self, run_id: i64, triggered_at: Timestamp, from: i32) -> io::Result<Option<Page>> {
        let Some(path) = self.path(run_id, triggered_at) else { return Ok(None) };
        match open(&path, OpenOptions::new().read(true)) {
            Ok(file) => read_page(BufReader::new(file), from).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes the directories of days older than `age` and nothing else. Blocks.
    pub fn clean(&self, age: Duration) -> io::Result<()> {
        let Some(today) = self.day(self.clock.now()) else { return Ok(()) };
        let entries = match fs::read_dir(&self.base) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let Some(day) = entry.file_name().to_str().and_then(|name| name.parse::<Date>().ok()) else {
                continue;
            };
            let days = (today - day).get_days();
            if entry.file_type()?.is_dir()
                && u64::try_from(days).is_ok_and(|days| days > age.as_secs() / 86_400)
            {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// Path of a run's log; `None` if the id or the time is invalid.
    fn path(&self, run_id: i64, triggered_at: Timestamp) -> Option<PathBuf> {
        if run_id < 0 || triggered_at.as_millis() < 0 {
            return None;
        }
        let day = self.day(triggered_at)?;
        Some(self.base.join(day.to_string()).join(format!("{run_id}.log")))
    }

    fn day(&self, at: Timestamp) -> Option<Date> {
        let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
        Some(at.to_zoned(self.zone.clone()).date())
    }
}

/// Opens a file; fails if the file or its directory is a symbolic link.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    if let Some(day) = path.parent()
        && fs::symlink_metadata(day)?.file_type().is_symlink()
    {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the directory of the day is a symbolic link",
        ));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Readable by the owner only: parameters and results may be confidential.
        options.custom_flags(libc::O_NOFOLLOW).mode(0o600);
    }
    options.open(path)
}

fn read_page(mut lines: impl BufRead, from: i32) -> io::Result<Page> {
    let mut page = Page { to: 0, text: String::new() };
    let mut line = Vec::new();
    while page.text.len() < PAGE_MAX {
        line.clear();
        lines.read_until(b'\n', &mut line)?;
        // End of the file, or a line that is still being written.
        if !line.ends_with(b"\n") {
            break;
        }
        page.to = page.to.saturating_add(1);
        if page.to >= from {
            page.text.push_str(&String::from_utf8_lossy(&line));
        }
    }
    Ok(page)
}

/// Approximate size of a page in bytes. A centre continues where a page ends and does not accept megabytes at once.
const PAGE_MAX: usize = 128 * 1024;

/// The log of one run. Clones write to the same log.
#[derive(Clone)]
pub(crate) struct RunLog {
    shared: Arc<Shared>,
}

struct Shared {
    sink: Mutex<Sink>,
    zone: TimeZone,
    clock: Arc<dyn Clock>,
}

enum Sink {
    Unopened { path: PathBuf, heading: String },
    Open { file: File, room: usize },
    Lines(Vec<String>),
    Closed,
}

impl RunLog {
    fn new(sink: Sink, zone: TimeZone, clock: Arc<dyn Clock>) -> RunLog {
        RunLog { shared: Arc::new(Shared { sink: Mutex::new(sink), zone, clock }) }
    }

    /// A log that keeps its lines in memory, for tests.
    pub fn in_memory(clock: Arc<dyn Clock>) -> RunLog {
        RunLog::new(Sink::Lines(Vec::new()), TimeZone::UTC, clock)
    }

    /// The lines kept in memory.
    pub fn lines(&self) -> Vec<String> {
        match &*self.sink() {
            Sink::Lines(lines) => lines.clone(),
            _ => Vec::new(),
        }
    }

    /// Whether the file has been created.
    pub fn is_begun(&self) -> bool {
        matches!(*self.sink(), Sink::Open { .. })
    }

    /// Adds a line. If the log cannot be written, the run continues and one warning is logged.
    pub fn line(&self, text: impl Display) {
        let mut sink = self.sink();
        if let Sink::Lines(lines) = &mut *sink {
            return lines.push(text.to_string());
        }
        if let Sink::Unopened { path, heading } = &*sink {
            let opened = self.begin(path, heading);
            *sink = opened.unwrap_or_else(|error| {
                tracing::warn!(path = %path.display(), %error, "failed to write the log of a run; its lines are lost");
                Sink::Closed
            });
        }
        if let Sink::Open { file, room } = &mut *sink {
            let mut line = self.stamped(&text);
            let is_last = line.len() > *room;
            if is_last {
                line = self.stamped(&"this log is full; the rest is not stored");
            }
            let written = file.write_all(line.as_bytes());
            *room = room.saturating_sub(line.len());
            if is_last || written.is_err() {
                *sink = Sink::Closed;
            }
        }
    }

    fn begin(&self, path: &Path, heading: &str) -> io::Result<Sink> {
        if let Some(day) = path.parent() {
            fs::create_dir_all(day)?;
        }
        let mut file = open(path, OpenOptions::new().create(true).append(true))?;
        file.write_all(self.stamped(&heading).as_bytes())?;
        Ok(Sink::Open { file, room: FILE_MAX })
    }

    /// Adds the time and truncates the line so that it fits a page.
    fn stamped(&self, text: &dyn Display) -> String {
        let at = jiff::Timestamp::from_millisecond(self.shared.clock.now().as_millis()).unwrap_or_default();
        let mut line = at.to_zoned(self.shared.zone.clone()).strftime("%F %T%.3f ").to_string();
        let start = line.len();
        line.push_str(&text.to_string());
        if line.len() - start > LINE_MAX {
            let mut cut = start + LINE_MAX;
            while !line.is_char_boundary(cut) {
                cut -= 1;
            }
            line.truncate(cut);
            line.push_str(" …");
        }
        line.push('\n');
        line
    }

    fn sink(&self) -> MutexGuard<'_, Sink> {
        // A `Display` that panics does so before anything is changed.
        self.shared.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RunLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunLog")
    }
}

/// Keeps a run that logs in a loop from filling the disk.
const FILE_MAX: usize = 64 * 1024 * 1024;
const LINE_MAX: usize = 32 * 1024;

tokio::task_local! {
    /// The log of the run that this task executes.
    pub(crate) static CURRENT: RunLog;
}

#[cfg(test)]
mod tests {
    use timer::testing::ManualClock;

    use super::*;

    const NOON: Timestamp = Timestamp::from_millis(1_794_744_000_000);

    #[test]
    fn pages_hold_whole_lines_from_where_they_are_asked() {
        let (directory, logs) = logs();
        let log = logs.of(7, NOON, "heading".to_owned());
        assert_eq!(logs.page(7, NOON, 1).unwrap(), None);
        log.line("one");
        log.line("two");
        check(&logs, 1, 3, &["heading", "one", "two"]);
        check(&logs, 0, 3, &["heading", "one", "two"]);
        check(&logs, 3, 3, &["two"]);
        check(&logs, 4, 3, &[]);
        check(&logs, i32::MAX, 3, &[]);
        // An incomplete line is not returned.
        let path = directory.path().join("2026-11-15/7.log");
        OpenOptions::new().append(true).open(path).unwrap().write_all(b"half").unwrap();
        check(&logs, 3, 3, &["two"]);
        log.line("x".repeat(LINE_MAX * 2));
        let cut = logs.page(7, NOON, 4).unwrap().unwrap();
        assert!(cut.text.ends_with(" …\n") && cut.text.len() < LINE_MAX + 100);
    }

    fn check(logs: &RunLogs, from: i32, to: i32, lines: &[&str]) {
        let page = logs.page(7, NOON, from).unwrap().unwrap();
        // The part after date and time.
        let texts: Vec<_> = page.text.lines().map(|line| line.splitn(3, ' ').nth(2).unwrap()).collect();
        assert_eq!((page.to, texts.as_slice()), (to, lines), "from {from}");
    }

    #[test]
    fn a_long_log_comes_in_several_pages() {
        let (_directory, logs) = logs();
        let log = logs.of(7, NOON, "heading".to_owned());
        (0..5_000).for_each(|number| log.line(format_args!("{number} {}", "x".repeat(100))));
        let (mut from, mut pages, mut lines) = (1, 0, 0);
        loop {
            let page = logs.page(7, NOON, from).unwrap().unwrap();
            if page.to < from {
                break;
            }
            assert!(page.text.len() < PAGE_MAX + LINE_MAX);
            (from, pages, lines) = (page.to + 1, pages + 1, lines + page.text.lines().count());
        }
        assert_eq!(lines, 5_001);
        assert!(pages > 1);
    }

    #[test]
    #[cfg(unix)]
    fn links_are_not_followed() {
        let (directory, logs) = logs();
        let secret = directory.path().join("secret");
        fs::write(&secret, "secret\n").unwrap();
        let day = directory.path().join("2026-11-15");
        fs::create_dir(&day).unwrap();
        std::os::unix::fs::symlink(&secret, day.join("7.log")).unwrap();
        assert!(logs.page(7, NOON, 1).is_err());
        logs.of(7, NOON, "heading".to_owned()).line("overwritten");
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret\n");

        let elsewhere = directory.path().join("elsewhere");
        fs::rename(&day, &elsewhere).unwrap();
        fs::write(elsewhere.join("8.log"), "secret\n").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &day).unwrap();
        assert!(logs.page(8, NOON, 1).is_err());
    }

    #[test]
    fn only_old_days_are_deleted() {
        let (directory, logs) = logs();
        for name in ["2026-11-15", "2026-11-12", "2026-11-11", "2020-01-01", "2027-01-01", "other", "1999"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        logs.clean(Duration::from_secs(3 * 86_400)).unwrap();
        let mut left: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["1999", "2026-11-12", "2026-11-15", "2027-01-01", "other"]);
    }

    #[test]
    fn odd_ids_and_times_have_no_log() {
        let (directory, logs) = logs();
        for (run_id, millis) in [(-1, 0), (1, -1), (1, i64::MAX), (i64::MIN, 0)] {
            let at = Timestamp::from_millis(millis);
            logs.of(run_id, at, String::new()).line("lost");
            assert_eq!(logs.page(run_id, at, 1).unwrap(), None);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    fn logs() -> (tempfile::TempDir, RunLogs) {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(NOON));
        let logs = RunLogs { base: directory.path().to_owned(), zone: TimeZone::UTC, clock };
        (directory, logs)
    }
}
