//! Work calendars, the jobs that keep to them, and jobs with a maximum of fires.

use std::sync::Arc;
use std::time::Duration;

use cron::{
    Beyond, Cron, Day, DayEntry, DstRule, OnDays, Schedule, Shift, Weekdays, WorkCalendar, Workdays, Zone,
};
use engine::{Control, JobId, JobSpec, JobWorkdays, Store as _, StoreError};

use super::Fresh;
use super::bench::{Bench, Simple};

const DAY: Duration = Duration::from_secs(86_400);

/// Every day is a workday unless it has an entry.
fn every_day() -> WorkCalendar {
    WorkCalendar::new(Weekdays::ALL)
}

pub async fn a_calendar_comes_back_as_it_was_saved(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let store = &bench.store;
    let mut calendar = WorkCalendar::new("Mon-Thu,Sun".parse().unwrap());
    calendar.known_until = Some("2028-12-31".parse().unwrap());
    calendar.beyond = Beyond::Stop;
    calendar.set("2026-10-01".parse().unwrap(), DayEntry::off("国庆节 '\\ 🦀"));
    calendar.set("2026-10-10".parse().unwrap(), DayEntry::work(""));
    assert_eq!(store.save_work_calendar("中国/cn", &calendar, None).await.unwrap(), 1);
    let found = store.work_calendar("中国/cn").await.unwrap().unwrap();
    assert_eq!((&*found.calendar, found.revision, found.jobs), (&calendar, 1, 0));

    // Days that were read are not used for another revision.
    let mut day: Day = "2027-01-01".parse().unwrap();
    for _ in 0..1_500 {
        calendar.set(day, DayEntry::off("many"));
        day = day.next();
    }
    calendar.remove("2026-10-01".parse().unwrap());
    assert_eq!(store.save_work_calendar("中国/cn", &calendar, Some(1)).await.unwrap(), 2);
    let found = store.work_calendar("中国/cn").await.unwrap().unwrap();
    assert_eq!((&*found.calendar, found.revision), (&calendar, 2));
    let refused = store.save_work_calendar("中国/cn", &calendar, Some(1)).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    let refused = store.save_work_calendar("new", &calendar, Some(1)).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");

    store.save_work_calendar("empty", &WorkCalendar::default(), None).await.unwrap();
    let names: Vec<String> = store.work_calendars().await.unwrap().into_iter().map(|row| row.name).collect();
    assert_eq!(names, ["empty", "中国/cn"]);
    assert!(store.delete_work_calendar("中国/cn").await.unwrap());
    assert!(!store.delete_work_calendar("中国/cn").await.unwrap());
    assert_eq!(store.work_calendar("中国/cn").await.unwrap(), None);
    assert_eq!(store.work_calendar("a\0b").await.unwrap(), None);
}

/// A job that fires every day at 09:00, if its calendar allows it.
async fn daily(bench: &Bench, calendar: &WorkCalendar, shift: Shift) -> JobSpec {
    let revision = bench.store.save_work_calendar("cn", calendar, None).await.unwrap();
    let row = bench.store.work_calendar("cn").await.unwrap().unwrap();
    let rule = Workdays::new(Arc::new(calendar.clone()), OnDays::Work, shift);
    let cron = Cron::parse("0 0 9 * * ?").unwrap();
    JobSpec {
        schedule: Schedule::cron(cron, Zone::utc(), DstRule::NATURAL),
        workdays: Some(JobWorkdays { calendar: row.id, name: "cn".into(), revision, rule }),
        ..bench.hourly()
    }
}

/// K1.
pub async fn a_job_is_planned_again_when_its_calendar_changes(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut calendar = every_day();
    let spec = daily(&bench, &calendar, Shift::Skip).await;
    let job = bench.start(&spec).await;
    let found = bench.store.job(job).await.unwrap().unwrap();
    assert_eq!((found.spec.workdays, found.problem), (spec.workdays.clone(), None));
    let first = bench.next_of(job).await.unwrap();
    assert_eq!(bench.store.jobs_to_replan(JobId(0), 10).await.unwrap(), []);

    // The day becomes a holiday after a node has claimed its fire.
    let claimed = bench.claim_at(first).await;
    assert_eq!(claimed.orders.len(), 1);
    calendar.set(Zone::utc().day_at(first), DayEntry::off("holiday"));
    bench.store.save_work_calendar("cn", &calendar, Some(1)).await.unwrap();
    assert_eq!(bench.store.jobs_to_replan(JobId(0), 10).await.unwrap(), [job]);
    assert_eq!(bench.store.jobs_to_replan(job, 10).await.unwrap(), []);
    bench.control(job, Control::Replan).await;
    assert_eq!(bench.next_of(job).await, Some(first + DAY), "the holiday is left out");
    assert_eq!(bench.cancelling(job).await, 1, "its node is asked to give the claimed fire back");
    assert_eq!(bench.store.jobs_to_replan(JobId(0), 10).await.unwrap(), []);
    let found = bench.store.job(job).await.unwrap().unwrap();
    assert_eq!(*found.spec.workdays.unwrap().rule.calendar, calendar);

    // Planned with the current days, it stays as it is.
    let revision = found.revision;
    bench.control(job, Control::Replan).await;
    assert_eq!(bench.store.job(job).await.unwrap().unwrap().revision, revision);
}

pub async fn a_calendar_that_a_job_uses_stays(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let mut calendar = every_day();
    let spec = daily(&bench, &calendar, Shift::Next).await;
    let job = bench.start(&spec).await;
    let conflict = bench.store.delete_work_calendar("cn").await;
    assert!(matches!(conflict, Err(StoreError::Conflict(ref why)) if why.contains("is used by job")));
    // A definition that was read before the calendar changed is refused.
    calendar.set("2026-10-01".parse().unwrap(), DayEntry::off("later"));
    bench.store.save_work_calendar("cn", &calendar, None).await.unwrap();
    let edit = Control::Edit { spec: Box::new(spec.clone()), revision: None };
    let refused = bench.store.control(job, &edit, 1_000, &Simple { now: bench.now }).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");

    let edit = JobSpec { workdays: None, ..spec };
    bench.control(job, Control::Edit { spec: Box::new(edit.clone()), revision: None }).await;
    assert_eq!(bench.store.job(job).await.unwrap().unwrap().spec, edit);
    assert!(bench.store.delete_work_calendar("cn").await.unwrap());
}

/// K3.
pub async fn fires_are_counted_up_to_the_maximum(fresh: Fresh) {
    let bench = Bench::new(fresh).await;
    let spec = JobSpec { max_fires: Some(2), ..bench.hourly() };
    let job = bench.start(&spec).await;
    let found = async || bench.store.job(job).await.unwrap().unwrap();
    assert_eq!((found().await.spec, found().await.fires), (spec.clone(), 0));
    for fires in 1..=2 {
        assert_eq!((bench.fire(job).await.len(), found().await.fires), (1, fires));
    }
    let stopped = found().await;
    assert_eq!((stopped.enabled, stopped.next_fire_at), (false, None), "the second one was the last");

    // A new start counts anew.
    bench.control(job, Control::Start).await;
    let started = found().await;
    assert_eq!((started.enabled, started.fires), (true, 0));
}
