//! Parity report: compares the fires of every job under Tickwright and XXL-JOB.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use cron::{Schedule, Timestamp, Zone};
use store::{Database, JobFilter, JobRow, Page};
use timer::{Clock, SystemClock};

use super::deviations::{Class, Fires, shown, under};
use crate::serve;

/// Prints the report; returns true if every job can be fired.
pub fn report(options: serve::Options) -> anyhow::Result<bool> {
    let settings = options.with_file()?.settings_to_look_at()?;
    if let Some(path) = missing_file(&settings.database) {
        bail!("there is no database at {path}; set XXL-JOB's database with --database-url or --config");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("failed to start the threads")?;
    runtime.block_on(async {
        let options = store::Options { zone: settings.zone.clone(), connections: 2, ..Default::default() };
        let database = store::open(&settings.database, options).await?;
        let about = database.about().await?;
        println!(
            "{}, tables of XXL-JOB {}, time zone {}",
            about.kind,
            about.generation,
            settings.zone.name()
        );
        compare_all(database, &settings.zone).await
    })
}

/// Path of the SQLite file if it does not exist.
fn missing_file(url: &str) -> Option<&str> {
    let path = url.strip_prefix("sqlite:")?.split('?').next()?;
    (!Path::new(path).exists()).then_some(path)
}

async fn compare_all(database: Arc<Database>, zone: &Zone) -> anyhow::Result<bool> {
    let now = SystemClock::new().now();
    let (mut jobs, mut differ, mut unreadable) = (0_usize, 0_usize, 0_usize);
    let mut page = Page::first(Page::MAX);
    loop {
        let found = database.job_page(&JobFilter::default(), page).await?;
        for row in &found.rows {
            jobs += 1;
            let remarks = remarks(row, zone, now);
            unreadable += usize::from(row.job.problem.is_some());
            differ += usize::from(!remarks.is_empty() && row.job.problem.is_none());
            if !remarks.is_empty() {
                println!("\njob {} `{}`, {}", row.job.id, row.job.spec.name, row.written_schedule.1);
                remarks.iter().for_each(|remark| println!("  {remark}"));
            }
        }
        match found.next {
            Some(next) => page = Page::After { after: Some(next), limit: Page::MAX },
            None => break,
        }
    }
    let alike = jobs - differ - unreadable;
    println!(
        "\n{jobs} jobs: {alike} fire the same under every release, {differ} differ under some, {unreadable} have an invalid schedule"
    );
    Ok(unreadable == 0)
}

/// Remarks about a job; empty if it fires as it did under XXL-JOB.
fn remarks(row: &JobRow, zone: &Zone, now: Timestamp) -> Vec<String> {
    let (kind, text) = &row.written_schedule;
    if let Some(problem) = &row.job.problem {
        return vec![format!("invalid schedule, does not fire here: {problem}")];
    }
    match (&row.job.spec.schedule, kind.as_str()) {
        (schedule @ Schedule::Cron { .. }, _) => {
            let ours: Vec<Timestamp> = schedule.iter_from(now).take(COMPARED).collect();
            Class::ALL.into_iter().filter_map(|class| difference(class, text, zone, now, &ours)).collect()
        }
        (_, "FIX_RATE") => fixed_rate(text),
        _ => Vec::new(),
    }
}

/// First difference of a class from our fires, and its explanation.
fn difference(class: Class, text: &str, zone: &Zone, now: Timestamp, ours: &[Timestamp]) -> Option<String> {
    let releases = class.releases();
    let time = |at: Option<&Timestamp>| {
        at.and_then(|at| shown(*at, zone))
            .map_or("never".to_owned(), |shown| shown.strftime("%F %T").to_string())
    };
    match under(class, text, zone, now, ours, COMPARED) {
        Fires::Alike => None,
        Fires::Refused(why) => {
            Some(format!("under {releases}: never, because {why}; here: {}", time(ours.first())))
        }
        Fires::Otherwise { fires, why } => {
            let first = ours.iter().zip(&fires).take_while(|(a, b)| a == b).count();
            let (here, there) = (time(ours.get(first)), time(fires.get(first)));
            let number = first + 1;
            Some(format!("under {releases}: fire {number} is {there}, here {here}, because {why}"))
        }
    }
}

fn fixed_rate(text: &str) -> Vec<String> {
    let too_long = text.trim().parse::<u64>().is_ok_and(|seconds| seconds > OVERFLOW);
    let why = || {
        format!(
            "under 2.3.0 to 3.0.0: fires continuously, because more than {OVERFLOW} s overflow; here: at \
             the given interval"
        )
    };
    too_long.then(why).into_iter().collect()
}

/// Number of fires compared.
const COMPARED: usize = 100;

/// Maximum number of seconds whose milliseconds fit into 32 bits.
const OVERFLOW: u64 = 2_147_483;
