//! `/v1/work-calendars`: holidays and make-up workdays, and the jobs that keep to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use cron::{CalendarFormat, Day, DayEntry, WorkCalendar, Workdays};
use engine::{Job, JobWorkdays};
use protocol::v1::{
    Beyond, MovedFires, OnDays, ProblemCode, Shift, WorkCalendarBody, WorkCalendarDay, WorkCalendarImport,
    WorkCalendarImported, WorkCalendarView,
};
use serde_json::{Value, json};
use store::CalendarRow;
use timer::Timestamp;

use super::authorise::{Authorised, Named, Nothing, Object, Owner, PutTarget};
use super::call::{Call, instant};
use super::jobs::outdated;
use super::reply::Reply;
use crate::jobs::ends_soon;
use crate::request_error::RequestError;

impl Object for CalendarRow {
    const KIND: &'static str = "calendar";

    async fn find(call: &Call) -> Result<Option<CalendarRow>, RequestError> {
        Ok(call.state.database.work_calendar(call.named("calendar")).await?)
    }

    fn owner(&self) -> Owner {
        Owner::Nobody
    }

    fn name(&self) -> String {
        format!("calendar:{}", self.name)
    }
}

impl Named for CalendarRow {
    const PARAMETER: &'static str = "calendar";

    fn may_be_named(name: &str) -> Option<&str> {
        Some(name)
    }
}

// ── Read ────────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn list(call: Call, _: Authorised<Nothing>) -> Result<Reply, RequestError> {
    let today = today(&call);
    let rows = call.state.database.work_calendars().await?;
    Ok(Reply::json(&rows.iter().map(|row| view(row, today, false)).collect::<Vec<_>>()))
}

pub async fn show(call: Call, row: Authorised<CalendarRow>) -> Result<Reply, RequestError> {
    Ok(Reply::json(&view(&row, today(&call), true)).revision(row.revision))
}

pub async fn export(call: Call, row: Authorised<CalendarRow>) -> Result<Reply, RequestError> {
    let format = match call.query.text("format") {
        Some(word) => format_named("format", word)?,
        None => CalendarFormat::Csv,
    };
    Ok(Reply::typed("text/plain; charset=utf-8", Body::from(format.print(&row.calendar))))
}

fn format_named(field: &str, word: &str) -> Result<CalendarFormat, RequestError> {
    word.parse().map_err(|error: cron::Error| RequestError::field(field, error.to_string()))
}

/// Today in the centre's time zone.
fn today(call: &Call) -> Day {
    call.state.zone.day_at(call.state.engine.now())
}

fn view(row: &CalendarRow, today: Day, with_days: bool) -> WorkCalendarView {
    let calendar = &row.calendar;
    let day = |(date, entry): (Day, &DayEntry)| WorkCalendarDay {
        date: date.to_string(),
        is_work: entry.is_work,
        name: entry.name().to_owned(),
    };
    WorkCalendarView {
        name: row.name.clone(),
        body: WorkCalendarBody {
            week: calendar.week.to_string(),
            known_until: calendar.known_until.map(|day| day.to_string()),
            beyond: match calendar.beyond {
                cron::Beyond::Weekdays => Beyond::Weekdays,
                cron::Beyond::Stop => Beyond::Stop,
            },
            days: if with_days { calendar.entries().map(day).collect() } else { Vec::new() },
        },
        day_count: calendar.entries().count() as u64,
        jobs: row.jobs,
        ends_soon: ends_soon(calendar, today),
        revision: row.revision,
    }
}

// ── Write ───────────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn put(call: Call, target: Authorised<PutTarget<CalendarRow>>) -> Result<Reply, RequestError> {
    let body: WorkCalendarBody = call.json()?;
    let calendar = calendar_of(&body)?;
    let (before, name) = taken(&call, target)?;
    let after = save(&call, &name, &calendar, before.as_ref()).await?;
    let status = if before.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    let reply = Reply::json(&view(&after, today(&call), true)).status(status).revision(after.revision);
    Ok(reply.changed(before.as_ref().map(written), Some(written(&after))))
}

pub async fn delete(call: Call, row: Authorised<CalendarRow>) -> Result<Reply, RequestError> {
    call.state.database.delete_work_calendar(&row.name).await?;
    Ok(Reply::done().changed(Some(written(&row)), None))
}

pub async fn import(call: Call, target: Authorised<PutTarget<CalendarRow>>) -> Result<Reply, RequestError> {
    let body: WorkCalendarImport = call.json()?;
    let (before, name) = taken(&call, target)?;
    let format = match &body.format {
        Some(word) => format_named("format", word)?,
        None => CalendarFormat::detect(&body.text),
    };
    let today = today(&call);
    let old = before.as_ref().map(|row| Arc::clone(&row.calendar)).unwrap_or_default();
    let work = move || import_into(&old, format, &body, today).map(|new| (old, body, new));
    // A large file takes a fraction of a second.
    let done = tokio::task::spawn_blocking(work).await.expect("a file is read without a panic");
    let (old, body, (new, ignored)) = done?;
    let Counts { added, replaced, removed, days } = Counts::of(&old, &new, today);
    let new = Arc::new(new);
    let jobs = match &before {
        Some(row) => moved_fires(&call, row, &new, days).await?,
        None => Vec::new(),
    };
    let after = match body.dry_run {
        true => {
            let row = before.clone().unwrap_or_else(|| CalendarRow {
                id: engine::CalendarId(0),
                name: name.clone(),
                revision: 0,
                calendar: Arc::clone(&new),
                jobs: 0,
            });
            CalendarRow { calendar: new, ..row }
        }
        false => save(&call, &name, &new, before.as_ref()).await?,
    };
    let calendar = view(&after, today, false);
    let imported = WorkCalendarImported { calendar, added, replaced, removed, ignored, jobs };
    let reply = Reply::json(&imported).revision(after.revision);
    Ok(match body.dry_run {
        true => reply.changed(None, Some(json!({ "dry_run": true }))),
        false => reply.changed(before.as_ref().map(written), Some(written(&after))),
    })
}

/// The calendar that a change replaces, and the name of the new one. Checks `If-Match`.
fn taken(
    call: &Call,
    target: Authorised<PutTarget<CalendarRow>>,
) -> Result<(Option<CalendarRow>, String), RequestError> {
    let wanted = call.header("if-match").map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'));
    let is_current =
        |row: &CalendarRow| wanted.is_none_or(|tag| tag == "*" || tag == row.revision.to_string());
    match target.into_inner() {
        PutTarget::Taken(row) if is_current(&row) => {
            let name = row.name.clone();
            Ok((Some(row), name))
        }
        PutTarget::Taken(_) => Err(outdated(OVERTAKEN)),
        PutTarget::Free(_) if wanted.is_some() => Err(outdated("this work calendar was deleted")),
        PutTarget::Free(name) => {
            let is_plain = name.trim() == name && !name.is_empty() && !name.chars().any(char::is_control);
            match is_plain && name.chars().count() <= NAME_MAX {
                true => Ok((None, name)),
                false => {
                    let why =
                        format!("must have 1 to {NAME_MAX} characters, without leading or trailing spaces");
                    Err(RequestError::field("calendar", why))
                }
            }
        }
        PutTarget::Hidden(_, refused) => Err(refused),
    }
}

/// Length of the name column.
const NAME_MAX: usize = 100;

const OVERTAKEN: &str = "the work calendar was changed in the meantime; read it again";

/// Stores a calendar and plans its jobs again. When this returns, nothing is sent any more that was planned with the
/// days before.
async fn save(
    call: &Call,
    name: &str,
    calendar: &WorkCalendar,
    before: Option<&CalendarRow>,
) -> Result<CalendarRow, RequestError> {
    let database = &call.state.database;
    database.save_work_calendar(name, calendar, before.map(|row| row.revision)).await?;
    call.state.jobs.replan().await?;
    let gone = || RequestError::new(ProblemCode::NotFound, "the work calendar was deleted in the meantime");
    database.work_calendar(name).await?.ok_or_else(gone)
}

/// Parses the body of a calendar.
fn calendar_of(body: &WorkCalendarBody) -> Result<WorkCalendar, RequestError> {
    let wrong = |field: &str, error: cron::Error| RequestError::field(field, error.to_string());
    let week = body.week.parse().map_err(|error| wrong("week", error))?;
    let mut calendar = WorkCalendar::new(week);
    calendar.known_until = last_day("known_until", body.known_until.as_deref())?;
    calendar.beyond = match body.beyond {
        Beyond::Weekdays => cron::Beyond::Weekdays,
        Beyond::Stop => cron::Beyond::Stop,
    };
    if body.days.len() > DAYS_MAX {
        return Err(RequestError::field("days", format!("must be at most {DAYS_MAX}")));
    }
    for (index, WorkCalendarDay { date, is_work, name }) in body.days.iter().enumerate() {
        let field = format!("days[{index}].date");
        let day: Day = date.parse().map_err(|error| wrong(&field, error))?;
        if !(1970..=2199).contains(&day.year()) {
            return Err(RequestError::field(&field, "must be from 1970-01-01 to 2199-12-31"));
        }
        let entry = if *is_work { DayEntry::work(name) } else { DayEntry::off(name) };
        if calendar.set(day, entry).is_some() {
            return Err(RequestError::field(&field, format!("{date} occurs twice; write one entry per day")));
        }
    }
    Ok(calendar)
}

/// More than fifty years in which every day has an entry.
const DAYS_MAX: usize = 20_000;

fn last_day(field: &str, text: Option<&str>) -> Result<Option<Day>, RequestError> {
    let read =
        |text: &str| text.parse().map_err(|error: cron::Error| RequestError::field(field, error.to_string()));
    text.map(read).transpose()
}

/// The calendar with the days of a file, and the number of events that are neither workdays nor days off.
fn import_into(
    old: &WorkCalendar,
    format: CalendarFormat,
    body: &WorkCalendarImport,
    today: Day,
) -> Result<(WorkCalendar, u64), RequestError> {
    let wrong = |error: cron::Error| RequestError::field("text", error.to_string());
    let imported = format.parse(&body.text, today).map_err(wrong)?;
    if imported.days.is_empty() {
        return Err(RequestError::field("text", "the file has no holidays or workdays"));
    }
    let mut new = old.clone();
    if body.replace {
        let years: BTreeSet<i16> = imported.days.keys().map(|day| day.year()).collect();
        let dropped: Vec<Day> =
            new.entries().map(|(day, _)| day).filter(|day| years.contains(&day.year())).collect();
        for day in dropped {
            new.remove(day);
        }
    }
    new.extend(&imported);
    if new.entries().count() > DAYS_MAX {
        let why =
            format!("the calendar would have more than {DAYS_MAX} days; replace it, or import fewer years");
        return Err(RequestError::field("text", why));
    }
    let of_file = imported.last_listed.and_then(|day| Day::new(day.year(), 12, 31).ok());
    new.known_until = match last_day("known_until", body.known_until.as_deref())? {
        Some(day) => Some(day),
        None => of_file.max(old.known_until),
    };
    Ok((new, imported.ignored as u64))
}

/// Differences between two versions of a calendar.
#[derive(Default)]
struct Counts {
    added: u64,
    replaced: u64,
    removed: u64,
    /// Days from today on that are a workday in one of them only.
    days: BTreeSet<Day>,
}

impl Counts {
    fn of(old: &WorkCalendar, new: &WorkCalendar, today: Day) -> Counts {
        let mut counts = Counts::default();
        let all: BTreeSet<Day> = old.entries().chain(new.entries()).map(|(day, _)| day).collect();
        for day in all {
            match (old.entry(day), new.entry(day)) {
                (None, Some(_)) => counts.added += 1,
                (Some(_), None) => counts.removed += 1,
                (Some(one), Some(other)) if one != other => counts.replaced += 1,
                _ => {}
            }
            if day >= today && old.is_work(day) != new.is_work(day) {
                counts.days.insert(day);
            }
        }
        counts
    }
}

/// Definition of a calendar as stored in the audit log: its days are counted.
fn written(row: &CalendarRow) -> Value {
    let calendar = &row.calendar;
    json!({
        "week": calendar.week.to_string(),
        "known_until": calendar.known_until.map(|day| day.to_string()),
        "beyond": calendar.beyond.to_string(),
        "days": calendar.entries().count(),
        "revision": row.revision,
    })
}

// ── Fires that change ───────────────────────────────────────────────────────────────────────────────────────────

/// Future fires of the calendar's jobs that the new days remove and add, around the days that change.
async fn moved_fires(
    call: &Call,
    row: &CalendarRow,
    new: &Arc<WorkCalendar>,
    days: BTreeSet<Day>,
) -> Result<Vec<MovedFires>, RequestError> {
    let jobs = call.state.database.jobs_on_calendar(row.id, JOBS_MAX).await?;
    if jobs.is_empty() || days.is_empty() {
        return Ok(Vec::new());
    }
    let (new, now) = (Arc::clone(new), call.state.engine.now());
    let compare = move || -> Vec<MovedFires> {
        jobs.into_iter().filter_map(|job| moved_fires_of(job, &new, &days, now)).collect()
    };
    Ok(tokio::task::spawn_blocking(compare).await.expect("fires are compared without a panic"))
}

fn moved_fires_of(
    job: Job,
    new: &Arc<WorkCalendar>,
    days: &BTreeSet<Day>,
    now: Timestamp,
) -> Option<MovedFires> {
    let own = job.spec.workdays.clone()?;
    let mut after = job.spec.clone();
    after.workdays = Some(JobWorkdays { rule: Workdays { calendar: Arc::clone(new), ..own.rule }, ..own });
    let zone = job.spec.schedule.zone()?;
    let (mut removed, mut added) = (BTreeSet::new(), BTreeSet::new());
    let mut until = now;
    for day in days.iter().take(CHANGED_DAYS_MAX) {
        // A time moves out of a row of holidays, or into one.
        let begin = (zone.start_of(*day) - AROUND).max(until);
        until = (zone.start_of(*day) + AROUND).max(until);
        let fires = |spec: &engine::JobSpec| -> BTreeSet<Timestamp> {
            let first = spec.next_after(begin);
            let fires = std::iter::successors(first, |last| spec.next_after(*last));
            fires.take_while(|at| *at <= until).take(FIRES_MAX).collect()
        };
        let (old, new) = (fires(&job.spec), fires(&after));
        // A list that was cut ends earlier than the other.
        let last = match (old.len() == FIRES_MAX, new.len() == FIRES_MAX) {
            (false, false) => until,
            _ => old.last().copied().unwrap_or(until).min(new.last().copied().unwrap_or(until)),
        };
        removed.extend(old.difference(&new).filter(|at| **at <= last));
        added.extend(new.difference(&old).filter(|at| **at <= last));
        if removed.len().max(added.len()) >= SHOWN_MAX {
            break;
        }
    }
    let shown = |fires: BTreeSet<Timestamp>| fires.into_iter().take(SHOWN_MAX).map(instant).collect();
    let changed = !removed.is_empty() || !added.is_empty();
    changed.then(|| MovedFires {
        job: job.id.0,
        key: job.spec.key,
        name: job.spec.name,
        removed: shown(removed),
        added: shown(added),
    })
}

/// Jobs compared in one response.
const JOBS_MAX: usize = 100;

/// Changed days around which fires are compared: those of several years of holidays.
const CHANGED_DAYS_MAX: usize = 200;

/// Fires compared around one day.
const FIRES_MAX: usize = 200;

/// Fires shown for one job.
const SHOWN_MAX: usize = 20;

/// Holidays in a row are rarely more than nine days.
const AROUND: std::time::Duration = std::time::Duration::from_secs(10 * 86_400);

// ── Work calendars of jobs ──────────────────────────────────────────────────────────────────────────────────────

/// Finds the work calendars that bodies of jobs name, each once.
#[derive(Default)]
pub struct Resolving {
    found: BTreeMap<String, Option<CalendarRow>>,
}

impl Resolving {
    /// The work calendar that a body names.
    pub async fn workdays(
        &mut self,
        call: &Call,
        body: Option<&protocol::v1::JobWorkdays>,
    ) -> Result<Option<JobWorkdays>, RequestError> {
        let Some(protocol::v1::JobWorkdays { calendar, on, shift }) = body else { return Ok(None) };
        if !self.found.contains_key(calendar) {
            let found = call.state.database.work_calendar(calendar).await?;
            self.found.insert(calendar.clone(), found);
        }
        let Some(Some(row)) = self.found.get(calendar) else {
            let shown: String = calendar.chars().take(40).collect();
            let why = format!(
                "the work calendar `{shown}` does not exist; `tickwright calendar list` lists the work calendars"
            );
            return Err(RequestError::field("workdays.calendar", why));
        };
        let on = match on {
            OnDays::Work => cron::OnDays::Work,
            OnDays::Off => cron::OnDays::Off,
            OnDays::Any => cron::OnDays::Any,
        };
        let shift = match shift {
            Shift::Skip => cron::Shift::Skip,
            Shift::Next => cron::Shift::Next,
            Shift::Previous => cron::Shift::Previous,
            Shift::Nearest => cron::Shift::Nearest,
        };
        Ok(Some(JobWorkdays {
            calendar: row.id,
            name: row.name.clone(),
            revision: row.revision,
            rule: Workdays::new(Arc::clone(&row.calendar), on, shift),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().unwrap()
    }

    fn body(json: &str) -> WorkCalendarBody {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_body_is_checked_day_by_day() {
        let good = body(
            r#"{"known_until":"2026-12-31","beyond":"stop","days":[{"date":"2026-10-01","is_work":false,"name":"国庆节"},{"date":"2026-10-10","is_work":true}]}"#,
        );
        let calendar = calendar_of(&good).unwrap();
        assert_eq!((calendar.week, calendar.beyond), (cron::Weekdays::MONDAY_TO_FRIDAY, cron::Beyond::Stop));
        assert!(!calendar.is_work(day("2026-10-01")) && calendar.is_work(day("2026-10-10")));
        let check = |json: &str, expected: &str| {
            let error = calendar_of(&body(json)).unwrap_err();
            assert!(error.detail().contains(expected), "{json}: {}", error.detail());
        };
        check(r#"{"week":"Mo-Fr"}"#, "is not a set of weekdays");
        check(r#"{"known_until":"2026-02-30"}"#, "is not a date");
        check(r#"{"days":[{"date":"2026-13-01","is_work":true}]}"#, "is not a date");
        check(r#"{"days":[{"date":"1969-12-31","is_work":true}]}"#, "must be from 1970-01-01");
        check(
            r#"{"days":[{"date":"2026-10-01","is_work":true},{"date":"2026-10-01","is_work":false}]}"#,
            "2026-10-01 occurs twice",
        );
    }

    #[test]
    fn an_import_adds_days_or_replaces_those_of_its_years() {
        let mut old = WorkCalendar::default();
        old.set(day("2025-10-01"), DayEntry::off("国庆节"));
        old.set(day("2026-05-01"), DayEntry::off("劳动节"));
        old.set(day("2026-10-01"), DayEntry::off("国庆"));
        let import = |json: &str| {
            let body: WorkCalendarImport = serde_json::from_str(json).unwrap();
            let format = CalendarFormat::detect(&body.text);
            import_into(&old, format, &body, day("2026-01-01"))
        };
        let text = r#""text":"2026-10-01,off,国庆节\n2026-10-10,work,国庆节\n""#;
        let (merged, _) = import(&format!("{{{text}}}")).unwrap();
        let counts = Counts::of(&old, &merged, day("2026-01-01"));
        assert_eq!((counts.added, counts.replaced, counts.removed), (1, 1, 0));
        assert_eq!(counts.days, BTreeSet::from([day("2026-10-10")]));
        assert_eq!(merged.known_until, Some(day("2026-12-31")));

        let (replaced, _) =
            import(&format!(r#"{{{text},"replace":true,"known_until":"2026-11-30"}}"#)).unwrap();
        let counts = Counts::of(&old, &replaced, day("2026-01-01"));
        assert_eq!((counts.added, counts.replaced, counts.removed), (1, 1, 1));
        assert!(replaced.entry(day("2025-10-01")).is_some(), "other years stay");
        assert_eq!(replaced.known_until, Some(day("2026-11-30")));

        let error = import(r#"{"text":"date,kind,name\n"}"#).unwrap_err();
        assert!(error.detail().contains("no holidays or workdays"), "{}", error.detail());
    }
}
