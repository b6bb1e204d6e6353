//! Checks whether a node with these settings would work: its database, clock, settings and executors.

mod hosts;
mod weak;

use std::path::Path;
use std::time::Duration;

use engine::{Skew, StoreError};
use futures_util::{StreamExt, stream};
use store::{About, Database, JobFilter, Page, Registry as _};
use timer::{Clock, SystemClock};

use crate::centre::ServerState;
use crate::http::Tls;
use crate::jobs::ends_soon;
use crate::outbound::Calls;
use crate::settings::Settings;

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Severity.
    pub health: Health,
    /// Description of the result.
    pub what: String,
    /// Suggested remedy.
    pub advice: Option<String>,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// As it should be.
    Good,
    /// Works, but could be safer.
    Weak,
    /// Does not work.
    Bad,
}

impl Finding {
    fn good(what: impl Into<String>) -> Finding {
        Finding { health: Health::Good, what: what.into(), advice: None }
    }

    fn weak(what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { health: Health::Weak, what: what.into(), advice: Some(advice.into()) }
    }

    /// A finding of something that does not work.
    pub fn bad(what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { health: Health::Bad, what: what.into(), advice: Some(advice.into()) }
    }
}

/// Runs all checks without changing anything; lists the tables that a start would add.
pub async fn examine(settings: &Settings) -> Vec<Finding> {
    let mut findings = weak::settings(settings);
    if let Some(identity) = settings.identity.clone() {
        findings.push(match Tls::load(identity) {
            Ok(_) => Finding::good("the certificate matches its private key"),
            Err(error) => Finding::bad(error.to_string(), "correct --tls-cert and --tls-key"),
        });
    }
    channels(settings, &mut findings).await;
    if let Some(path) = missing_file(&settings.database) {
        findings.push(Finding::good(format!("no database yet: {path} will be created at the first start")));
        return findings;
    }
    let options = store::Options {
        zone: settings.zone.clone(),
        connections: settings.connections,
        // For a file: does not take exclusive access from a running node, and does not clean up after an earlier
        // process.
        shared: true,
        ..store::Options::default()
    };
    let opened = tokio::time::timeout(PATIENCE, look(&settings.database, options));
    match opened.await {
        Ok(Ok(Look::Ready(database))) => look_inside(settings, database, &mut findings).await,
        Ok(Ok(Look::Pending(pending))) => {
            let added = pending.join(", ");
            findings.push(Finding::good(format!("the database responds; the first start will add {added}")));
        }
        Ok(Err(error)) => findings.push(not_opened(&error)),
        Err(_) => findings.push(Finding::bad(
            format!("the database did not respond within {PATIENCE:?}"),
            "check that it is running, and that its address and port are reachable from this machine",
        )),
    }
    findings
}

/// Checks the alert channels that can be checked without sending a notification.
async fn channels(settings: &Settings, findings: &mut Vec<Finding>) {
    for channel in &settings.channels {
        let kind = channel.kind();
        match channel.check().await {
            Some(Ok(())) => findings.push(Finding::good(format!("connected to the {kind} server"))),
            Some(Err(why)) => findings.push(Finding::bad(
                format!("failed to connect to the {kind} server for alerts: {why}"),
                format!("start the server, or correct address, user and password in --alert-{kind}"),
            )),
            None => {}
        }
    }
}

/// Result of opening the database.
enum Look {
    Ready(std::sync::Arc<Database>),
    /// Migrations that a start would apply first.
    Pending(Vec<String>),
}

/// Opens a database only if that changes nothing.
async fn look(url: &str, options: store::Options) -> Result<Look, StoreError> {
    let pending = store::pending(url, options.clone()).await?;
    if !pending.is_empty() {
        return Ok(Look::Pending(pending));
    }
    Ok(Look::Ready(store::open(url, options).await?))
}

/// Path of an SQLite file that does not exist yet.
fn missing_file(url: &str) -> Option<&str> {
    let path = url.strip_prefix("sqlite:")?.split('?').next()?;
    (path != ":memory:" && !Path::new(path).exists()).then_some(path)
}

fn not_opened(error: &StoreError) -> Finding {
    let what = format!("failed to use the database: {error}");
    match error {
        StoreError::Conflict(_) => Finding::weak(
            "a node is using this database file, so its tables and executors were not checked",
            "check the running node instead: /readyz reports its health, /metrics the number of executors",
        ),
        // A database server returns the same error for a user without access and for broken tables.
        StoreError::Schema(_) => Finding::bad(
            what,
            "correct user, password and name in --database-url; if they are correct, restore the tables or \
             use an empty database",
        ),
        _ => Finding::bad(
            what,
            "check that it is running, and check user, password and name in --database-url",
        ),
    }
}

async fn look_inside(settings: &Settings, database: std::sync::Arc<Database>, findings: &mut Vec<Finding>) {
    match database.about().await {
        Ok(about) => {
            findings.push(Finding::good(format!("the database responds: {}", described(&about))));
            findings.push(clock(&about));
            hosts::check(&settings.database, findings).await;
        }
        Err(error) => return findings.push(not_opened(&error)),
    }
    let state = match ServerState::new(settings, database, settings.listen) {
        Ok(state) => state,
        Err(error) => return findings.push(Finding::bad(error.to_string(), "correct the option")),
    };
    let looked = async {
        state.registrar.load().await?;
        jobs(&state, settings, findings).await?;
        calendars(&state, settings, findings).await?;
        executors(&state, findings).await
    };
    if let Err(error) = looked.await {
        findings.push(not_opened(&error));
    }
}

fn described(about: &About) -> String {
    match about.was_xxl_jobs {
        true => format!("{}, tables of XXL-JOB {}", about.kind, about.generation),
        false => format!("{}, tables created by Tickwright", about.kind),
    }
}

fn clock(about: &About) -> Finding {
    let apart = SystemClock::new().now().as_millis() - about.now.as_millis();
    match apart.abs() <= Skew::MAX_MILLIS {
        true => Finding::good(format!("the clock differs from the database's by {apart} ms")),
        false => Finding::bad(
            format!(
                "the clock differs from the database's by {apart} ms; a node claims no runs above {} ms",
                Skew::MAX_MILLIS
            ),
            "synchronize both machines with the same time servers (chrony, systemd-timesyncd)",
        ),
    }
}

/// Finds work calendars whose data has ended or will soon.
async fn calendars(
    state: &ServerState,
    settings: &Settings,
    findings: &mut Vec<Finding>,
) -> Result<(), StoreError> {
    let today = settings.zone.day_at(SystemClock::new().now());
    for row in state.database.work_calendars().await? {
        if let Some(until) = row.calendar.known_until.filter(|_| ends_soon(&row.calendar, today)) {
            findings.push(Finding::weak(
                format!(
                    "the data of the work calendar `{}` ends on {until}; {} jobs use it",
                    row.name, row.jobs
                ),
                format!("import the next year: `tickwright calendar import {} FILE`", row.name),
            ));
        }
    }
    Ok(())
}

/// Finds started jobs that would not run: with a schedule that cannot be read, or a script while scripts are disabled.
async fn jobs(
    state: &ServerState,
    settings: &Settings,
    findings: &mut Vec<Finding>,
) -> Result<(), StoreError> {
    let (mut scripts, mut unreadable, mut named) = (0, 0, Vec::new());
    let mut page = Page::first(Page::MAX);
    loop {
        let found = state.database.job_page(&JobFilter::default(), page).await?;
        for job in found.rows.iter().map(|row| &row.job).filter(|job| job.enabled) {
            scripts += usize::from(job.spec.script.is_some() && !settings.scripts);
            let Some(problem) = &job.problem else { continue };
            unreadable += 1;
            if named.len() < NAMED_MAX {
                named.push(format!("job {} ({problem})", job.id));
            }
        }
        match found.next {
            Some(after) => page = Page::After { after: Some(after), limit: Page::MAX },
            None => break,
        }
    }
    if scripts > 0 {
        findings.push(Finding::bad(
            format!("{scripts} started jobs are scripts, but scripts are disabled: their runs fail"),
            "set --allow-scripts, or change the jobs to call handlers",
        ));
    }
    if unreadable > 0 {
        let more = if unreadable > named.len() { ", …" } else { "" };
        findings.push(Finding::bad(
            format!(
                "{unreadable} started jobs do not fire, because their schedules cannot be read: {}{more}",
                named.join(", ")
            ),
            "correct the schedules of these jobs, or stop the jobs",
        ));
    }
    Ok(())
}

/// Jobs with unreadable schedules that a finding names.
const NAMED_MAX: usize = 5;

async fn executors(state: &ServerState, findings: &mut Vec<Finding>) -> Result<(), StoreError> {
    let mut calls = Vec::new();
    for app in state.database.apps().await? {
        let addresses = state.directory.sightings(app.id).into_iter().map(|seen| seen.address);
        let addresses: Vec<String> = addresses.collect();
        if addresses.is_empty() {
            findings.push(Finding::weak(
                format!("the app `{}` has no executor", app.spec.name),
                "start an executor, or add its address to the app",
            ));
        }
        let to = state.directory.destination(app.id);
        let callee = |address: String| {
            let callee = to.as_ref().and_then(|to| to.callee(&address));
            (address, app.spec.name.clone(), callee)
        };
        calls.extend(addresses.into_iter().map(callee));
    }
    let left_out = calls.len().saturating_sub(CALLS_MAX);
    calls.truncate(CALLS_MAX);
    let answers = stream::iter(calls).map(|(address, app, callee)| async move {
        let why = match callee {
            Some(callee) => state.outbound.beat(&callee).await.err()?.to_string(),
            None => "invalid address".into(),
        };
        Some(Finding::bad(
            format!("the executor {address} of the app `{app}` does not respond: {why}"),
            "start it, check the network, or remove its address from the app",
        ))
    });
    let answers: Vec<Option<Finding>> = answers.buffered(AT_ONCE).collect().await;
    let well = answers.iter().filter(|answer| answer.is_none()).count();
    findings.extend(answers.into_iter().flatten());
    if well > 0 {
        findings.push(Finding::good(format!("{well} executors respond")));
    }
    if left_out > 0 {
        findings.push(Finding::weak(format!("{left_out} more executors were not checked"), "see /metrics"));
    }
    Ok(())
}

/// Timeout for opening the database.
const PATIENCE: Duration = Duration::from_secs(15);

/// Maximum number of executors to call.
const CALLS_MAX: usize = 500;

/// Number of concurrent calls.
const AT_ONCE: usize = 16;
