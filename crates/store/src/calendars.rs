//! Work calendars of jobs. Their days are kept in memory, by the revision that each transaction reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use cron::{Beyond, Day, DayEntry, OnDays, Shift, Weekdays, WorkCalendar, Workdays};
use engine::{CalendarId, JobWorkdays, StoreError};

use crate::database::Tables;
use crate::jobs::Stored;
use crate::session::{Lock, Row, Session, SessionError, Value};
use crate::table::table;

/// Work calendars that were used lately.
#[derive(Default)]
pub struct Calendars {
    known: Mutex<BTreeMap<i64, StoredCalendar>>,
}

/// A stored work calendar.
#[derive(Clone, Debug)]
pub struct StoredCalendar {
    pub id: CalendarId,
    pub name: String,
    pub revision: i64,
    pub calendar: Arc<WorkCalendar>,
}

impl Calendars {
    fn get(&self, id: i64, revision: i64) -> Option<StoredCalendar> {
        let known = self.known.lock().expect("no holder of this lock panics");
        known.get(&id).filter(|known| known.revision == revision).cloned()
    }

    fn keep(&self, calendar: StoredCalendar) {
        let mut known = self.known.lock().expect("no holder of this lock panics");
        let id = calendar.id.0;
        known.insert(id, calendar);
        while known.len() > KNOWN_MAX {
            let Some(oldest) = known.keys().find(|other| **other != id).copied() else { break };
            known.remove(&oldest);
        }
    }
}

/// Calendars kept in memory: most have some hundred days, of about 100 bytes each.
const KNOWN_MAX: usize = 50;

/// A calendar to write.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    pub id: i64,
    pub name: &'a str,
    pub calendar: &'a WorkCalendar,
    pub revision: i64,
}

table! {
    /// Row of `tw_work_calendar`.
    struct HeadRow in "tw_work_calendar" of head: Head<'_> {
        name: String = head.name,
    }
    edited by id {
        week: i64 = i64::from(head.calendar.week.bits()),
        known_until: Option<i64> = head.calendar.known_until.map(number_of),
        beyond: String = head.calendar.beyond.to_string(),
        revision: i64 = head.revision,
    }
    not inserted { id: i64 = head.id }
}

impl HeadRow {
    /// The columns of a new calendar, with a function for the row.
    pub const NEW: crate::table::Write<fn(Head<'_>) -> Vec<Value>> = HeadRow::INSERT;

    /// The columns of a changed calendar, with a function for the row.
    pub const CHANGED: crate::table::Write<fn(Head<'_>) -> Vec<Value>> = HeadRow::EDIT;
}

/// Reads calendars by their ids. Calendars that do not exist are omitted.
pub async fn load(
    s: &mut dyn Session,
    tables: &Tables,
    ids: &BTreeSet<i64>,
) -> Result<BTreeMap<i64, StoredCalendar>, SessionError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found = select(s, tables, "WHERE id IN ?", &[Value::Ids(ids.iter().copied().collect())]).await?;
    Ok(found.into_iter().map(|found| (found.id.0, found)).collect())
}

/// Reads the calendars that match `tail`.
pub async fn select(
    s: &mut dyn Session,
    tables: &Tables,
    tail: &str,
    params: &[Value],
) -> Result<Vec<StoredCalendar>, SessionError> {
    let sql = format!("SELECT {} FROM tw_work_calendar {tail}", HeadRow::LIST);
    let heads = s.query(&sql, params, Lock::None).await?;
    let mut found = Vec::with_capacity(heads.len());
    for head in heads {
        let head = HeadRow::read(&mut head.read())?;
        found.push(match tables.calendars.get(head.id, head.revision) {
            Some(known) => known,
            None => read(s, tables, head).await?,
        });
    }
    Ok(found)
}

async fn read(s: &mut dyn Session, tables: &Tables, head: HeadRow) -> Result<StoredCalendar, SessionError> {
    let sql = "SELECT day, is_work, name FROM tw_work_calendar_day WHERE calendar_id = ?";
    let days = s.query(sql, &[head.id.into()], Lock::None).await?;
    // Another transaction may have changed the days between the two queries.
    let sql = "SELECT revision FROM tw_work_calendar WHERE id = ?";
    let again = s.query(sql, &[head.id.into()], Lock::None).await?;
    let again = again.into_iter().next().map(|row| row.read().int()).transpose()?;
    if again != Some(head.revision) {
        return Err(SessionError::Collision("a work calendar was changed while it was read".into()));
    }
    let wrong = |what: &str| StoreError::Schema(format!("the work calendar `{}` has {what}", head.name));
    let week = u8::try_from(head.week).unwrap_or_default();
    let mut calendar = WorkCalendar::new(Weekdays::from_bits(week));
    calendar.known_until = match head.known_until {
        Some(number) => Some(day_of(number).ok_or_else(|| wrong("an end of its data that is no date"))?),
        None => None,
    };
    calendar.beyond = head.beyond.parse::<Beyond>().map_err(|error| wrong(&error.to_string()))?;
    for row in days {
        let (day, entry) = entry(row)?;
        calendar.set(day.ok_or_else(|| wrong("a day that is no date"))?, entry);
    }
    let (id, name, revision) = (CalendarId(head.id), head.name, head.revision);
    let found = StoredCalendar { id, name, revision, calendar: Arc::new(calendar) };
    tables.calendars.keep(found.clone());
    Ok(found)
}

fn entry(row: Row) -> Result<(Option<Day>, DayEntry), SessionError> {
    let mut row = row.read();
    let (day, is_work, name) = (day_of(row.int()?), row.int()? != 0, row.text()?);
    Ok((day, if is_work { DayEntry::work(&name) } else { DayEntry::off(&name) }))
}

/// A date as a number, for example 20261001.
pub fn number_of(day: Day) -> i64 {
    i64::from(day.year()) * 10_000 + i64::from(day.month()) * 100 + i64::from(day.day())
}

fn day_of(number: i64) -> Option<Day> {
    let year = i16::try_from(number / 10_000).ok()?;
    let (month, day) = (u8::try_from(number / 100 % 100).ok()?, u8::try_from(number % 100).ok()?);
    Day::new(year, month, day).ok()
}

/// Columns of a job's work calendar.
#[derive(Clone, Debug)]
pub struct WorkdaysColumns {
    pub calendar: i64,
    /// Revision of the calendar when the next fire was computed.
    pub revision: i64,
    pub on: Option<String>,
    pub shift: Option<String>,
}

/// Adds their work calendars to jobs.
pub async fn attach(s: &mut dyn Session, tables: &Tables, found: &mut [Stored]) -> Result<(), SessionError> {
    let ids = found.iter().filter_map(|stored| Some(stored.workdays.as_ref()?.calendar)).collect();
    let calendars = load(s, tables, &ids).await?;
    for stored in found {
        let Some(columns) = &stored.workdays else { continue };
        let rule = |calendar: &StoredCalendar| -> Result<JobWorkdays, cron::Error> {
            let on = columns.on.as_deref().map_or(Ok(OnDays::Work), str::parse)?;
            let shift = columns.shift.as_deref().map_or(Ok(Shift::Skip), str::parse)?;
            Ok(JobWorkdays {
                calendar: calendar.id,
                name: calendar.name.clone(),
                revision: calendar.revision,
                rule: Workdays::new(Arc::clone(&calendar.calendar), on, shift),
            })
        };
        match calendars.get(&columns.calendar).map(rule) {
            Some(Ok(workdays)) => stored.job.spec.workdays = Some(workdays),
            Some(Err(error)) => stored.job.problem = Some(error.to_string()),
            None => stored.job.problem = Some("the work calendar of the job does not exist".into()),
        }
    }
    Ok(())
}

/// Locks calendars against changes until the transaction ends; returns their revisions.
pub async fn lock(
    s: &mut dyn Session,
    ids: BTreeSet<CalendarId>,
) -> Result<BTreeMap<CalendarId, i64>, SessionError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids = Value::Ids(ids.into_iter().map(|id| id.0).collect());
    let sql = "SELECT id, revision FROM tw_work_calendar WHERE id IN ? ORDER BY id";
    let rows = s.query(sql, &[ids], Lock::Wait).await?;
    let revision = |row: Row| {
        let mut row = row.read();
        Ok((CalendarId(row.int()?), row.int()?))
    };
    rows.into_iter().map(revision).collect()
}
