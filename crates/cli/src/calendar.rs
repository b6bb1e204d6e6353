//! `tickwright calendar`: work calendars, with holidays and make-up workdays.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use protocol::v1::{
    Beyond, MovedFires, ProblemCode, WorkCalendarBody, WorkCalendarImport, WorkCalendarImported,
    WorkCalendarView,
};

use crate::api::{Call, Client, Output, Remote, path};
use crate::terminal::{self, Mood, Paint};

/// Work calendars.
#[derive(Args)]
pub struct Calendar {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List work calendars.
    List,
    /// Show a work calendar with its holidays and make-up workdays.
    Show {
        /// Name of the calendar.
        name: String,
    },
    /// Create a work calendar without days, or change the settings of an existing one.
    Set {
        /// Name of the calendar.
        name: String,
        /// Weekdays that are workdays, for example Mon-Fri or Sun-Thu [default: Mon-Fri].
        #[arg(long, value_name = "WEEKDAYS")]
        week: Option<String>,
        /// Last day of the published data, for example 2026-12-31.
        #[arg(long, value_name = "DATE")]
        known_until: Option<String>,
        /// Days after the published data: the weekdays decide, or nothing fires [default: weekdays].
        #[arg(long, value_name = "weekdays|stop")]
        beyond: Option<Beyond>,
    },
    /// Import the days of a file into a new or existing calendar, and plan its jobs again.
    Import(Import),
    /// Write the days of a calendar to a file.
    Export {
        /// Name of the calendar.
        name: String,
        /// File to write [default: standard output].
        file: Option<PathBuf>,
        /// Format of the file.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Delete a work calendar; no job may use it.
    Rm {
        /// Name of the calendar.
        name: String,
    },
}

#[derive(Args)]
struct Import {
    /// Name of the calendar.
    name: String,
    /// File in the iCalendar format, as CSV lines of date,work|off,name, or as JSON with `days` of `date`, `name` and
    /// `isOffDay`; - for standard input.
    file: PathBuf,
    /// Format of the file [default: detected].
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Delete other entries of the years in the file; otherwise entries are only added and replaced.
    #[arg(long)]
    replace: bool,
    /// Last day of the published data [default: the end of the last year in the file].
    #[arg(long, value_name = "DATE")]
    known_until: Option<String>,
    /// Print what would change, and which fires of which jobs would move, without importing.
    #[arg(long)]
    dry_run: bool,
}

/// Format of a file with the days of a calendar.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Format {
    #[default]
    Csv,
    Ical,
    Json,
}

impl Format {
    fn word(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Ical => "ical",
            Format::Json => "json",
        }
    }
}

/// Runs the command.
pub async fn run(Calendar { remote, command }: Calendar) -> Result<()> {
    let calendars = Calendars { client: Client::of(&remote)?, output: remote.output };
    match command {
        Command::List => calendars.list().await,
        Command::Show { name } => calendars.show(&name).await,
        Command::Set { name, week, known_until, beyond } => {
            calendars.set(&name, week, known_until, beyond).await
        }
        Command::Import(import) => calendars.import(import).await,
        Command::Export { name, file, format } => calendars.export(&name, file, format).await,
        Command::Rm { name } => calendars.delete(&name).await,
    }
}

struct Calendars {
    client: Client,
    output: Output,
}

/// Path of a calendar.
fn at(name: &str, after: &str) -> String {
    path("/v1/work-calendars/", name, after)
}

/// Context of an error message.
fn about(name: &str) -> String {
    format!("work calendar `{name}`")
}

impl Calendars {
    async fn list(&self) -> Result<()> {
        let calendars: Vec<WorkCalendarView> = self.client.fetch(Call::get("/v1/work-calendars")).await?;
        if self.output == Output::Json {
            return terminal::say_json(&calendars);
        }
        let paint = Paint::stdout();
        let row = |calendar: &WorkCalendarView| {
            let mood = if calendar.ends_soon { Mood::Bad } else { Mood::Plain };
            vec![
                paint.cell(&calendar.name, Mood::Plain),
                paint.cell(&calendar.body.week, Mood::Plain),
                paint.cell(calendar.day_count, Mood::Plain),
                paint.cell(calendar.body.known_until.as_deref().unwrap_or("-"), mood),
                paint.cell(calendar.jobs, Mood::Plain),
            ]
        };
        let heads = ["CALENDAR", "WEEK", "DAYS", "KNOWN UNTIL", "JOBS"];
        terminal::say(&terminal::table(&heads, calendars.iter().map(row)))?;
        for calendar in calendars.iter().filter(|calendar| calendar.ends_soon) {
            let until = calendar.body.known_until.as_deref().unwrap_or_default();
            eprintln!("the data of {} ends on {until}; import the next year", calendar.name);
        }
        Ok(())
    }

    async fn fetch(&self, name: &str) -> Result<WorkCalendarView> {
        self.client.fetch(Call::get(at(name, ""))).await.with_context(|| about(name))
    }

    async fn show(&self, name: &str) -> Result<()> {
        let calendar = self.fetch(name).await?;
        if self.output == Output::Json {
            return terminal::say_json(&calendar);
        }
        let WorkCalendarBody { week, known_until, beyond, days } = &calendar.body;
        terminal::say(&terminal::facts([
            ("calendar", calendar.name.clone()),
            ("week", week.clone()),
            ("known until", known_until.clone().unwrap_or_default()),
            ("beyond", known_until.as_ref().map(|_| beyond.to_string()).unwrap_or_default()),
            ("jobs", calendar.jobs.to_string()),
        ]))?;
        for day in days {
            let kind = if day.is_work { "work" } else { "off" };
            let line = format!("  {}  {kind:<4}  {}", day.date, day.name);
            terminal::say(line.trim_end())?;
        }
        Ok(())
    }

    async fn set(
        &self,
        name: &str,
        week: Option<String>,
        known_until: Option<String>,
        beyond: Option<Beyond>,
    ) -> Result<()> {
        let found: Result<WorkCalendarView, _> = self.client.fetch(Call::get(at(name, ""))).await;
        let (mut body, call) = match found {
            Ok(found) => {
                let tag = format!("\"{}\"", found.revision);
                (found.body, Call::put(at(name, "")).header("if-match", &tag))
            }
            Err(trouble) if trouble.is(ProblemCode::NotFound) => {
                let empty = serde_json::from_str("{}").context("failed to create an empty calendar")?;
                (empty, Call::put(at(name, "")))
            }
            Err(trouble) => return Err(trouble.into()),
        };
        body.week = week.unwrap_or(body.week);
        body.known_until = known_until.or(body.known_until);
        body.beyond = beyond.unwrap_or(body.beyond);
        let saved = self.client.fetch(call.json(&body).patient()).await;
        let saved: WorkCalendarView = saved.with_context(|| about(name))?;
        match self.output {
            Output::Json => terminal::say_json(&saved),
            Output::Table => terminal::say(&format!("{name} saved")),
        }
    }

    async fn import(&self, import: Import) -> Result<()> {
        let Import { name, file, format, replace, known_until, dry_run } = import;
        let body = WorkCalendarImport {
            text: text(&file)?,
            format: format.map(|format| format.word().to_owned()),
            replace,
            known_until,
            dry_run,
        };
        let call = Call::post(at(&name, "/import")).json(&body).patient();
        let imported: WorkCalendarImported =
            self.client.fetch(call).await.with_context(|| file.display().to_string())?;
        if self.output == Output::Json {
            return terminal::say_json(&imported);
        }
        let WorkCalendarImported { added, replaced, removed, ignored, .. } = &imported;
        terminal::say(&format!("{name}: {added} days added, {replaced} replaced, {removed} removed"))?;
        if *ignored > 0 {
            terminal::say(&format!("{ignored} events are neither holidays nor workdays"))?;
        }
        if let Some(until) = &imported.calendar.body.known_until {
            terminal::say(&format!("known until {until}"))?;
        }
        for MovedFires { key, job, name, removed, added } in &imported.jobs {
            let key = key.clone().unwrap_or_else(|| format!("id:{job}"));
            terminal::say(&format!("{key} ({name})"))?;
            removed.iter().try_for_each(|at| terminal::say(&format!("  - {}", terminal::local(*at))))?;
            added.iter().try_for_each(|at| terminal::say(&format!("  + {}", terminal::local(*at))))?;
        }
        if dry_run {
            eprintln!("nothing was imported, because of --dry-run");
        }
        Ok(())
    }

    async fn export(&self, name: &str, file: Option<PathBuf>, format: Format) -> Result<()> {
        let call = Call::get(at(name, "/export")).query("format", Some(format.word()));
        let text = self.client.send(call).await.with_context(|| about(name))?.text();
        let Some(file) = file else { return terminal::write(&text) };
        fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))?;
        eprintln!("exported {name} to {}", file.display());
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<()> {
        self.client.send(Call::delete(at(name, ""))).await.with_context(|| about(name))?;
        match self.output {
            Output::Json => Ok(()),
            Output::Table => terminal::say(&format!("{name} deleted")),
        }
    }
}

fn text(file: &Path) -> Result<String> {
    let mut text = String::new();
    let read = match file.as_os_str() == "-" {
        true => std::io::stdin().take(FILE_MAX + 1).read_to_string(&mut text),
        false => fs::File::open(file).and_then(|file| file.take(FILE_MAX + 1).read_to_string(&mut text)),
    };
    let read = read.with_context(|| format!("failed to read {}", file.display()))?;
    if read as u64 > FILE_MAX {
        bail!("{} is larger than {} MiB; import fewer years at a time", file.display(), FILE_MAX >> 20);
    }
    Ok(text)
}

/// Less than the largest body that the centre accepts. The file of a country has some 30 kB.
const FILE_MAX: u64 = 3 * 1_024 * 1_024;
