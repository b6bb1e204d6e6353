//! Cost of a centre with nothing to do.

use std::time::Duration;

use anyhow::Result;
use tickwright_tests::Figure;
use tickwright_tests::database::Database;
use tickwright_tests::process::Resting;

use super::figure;

/// Statements, commits and CPU time per second with jobs that fire every hour.
pub async fn measure(database: &Database) -> Result<Vec<Figure>> {
    let resting = Resting::start(database, JOBS).await?;
    let rest = resting.observe(LENGTH).await?;
    resting.stop().await?;
    let name = database.name();
    let seconds = rest.took.as_secs_f64();
    let cpu = 100.0 * rest.cpu.as_secs_f64() / seconds;
    let case = format!("at rest with {JOBS} jobs");
    let (what, count) = match database {
        Database::Sqlite => ("commits", rest.commits),
        _ => ("statements", rest.statements),
    };
    let per_second = count as f64 / seconds;
    println!("{name:<10} rest   {JOBS} jobs each hour: {per_second:.2} {what}/s, {cpu:.2} % of a core");
    Ok(vec![
        figure(name, &format!("{case}, {what}"), per_second, "1/s"),
        figure(name, &format!("{case}, cpu"), cpu, "%"),
    ])
}

const JOBS: u64 = 10_000;

/// Long enough to contain what a centre does once a minute.
const LENGTH: Duration = Duration::from_secs(60);
