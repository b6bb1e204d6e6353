//! Lateness of fires while hostile input is sent to every endpoint: `make bench-hostile`.

use std::time::Duration;

use anyhow::Result;
use tickwright_tests::Figure;
use tickwright_tests::database::Database;
use tickwright_tests::hostile::{Disturbance, Story};

/// Measures undisturbed, with hostile input, and while the jobs of another app are deleted.
pub async fn measure(database: &Database, seconds: u64) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let cases = [
        ("in peace", Disturbance::None),
        ("attacked", Disturbance::BadInput),
        ("deletions", Disturbance::Deletions),
    ];
    for (case, disturbance) in cases {
        let told =
            Story { jobs: JOBS, length: Duration::from_secs(seconds), disturbance }.play(database).await?;
        println!("{:<10} {case:<9} {told}", database.name());
        let figure = |what: &str, value, unit| {
            Figure::new("hostile", database.name(), &format!("{case} {what}"), value, unit)
        };
        figures.extend([
            figure("lateness p50", told.timing.p50, "ms"),
            figure("lateness p99", told.timing.p99, "ms"),
            figure("lateness max", told.timing.max, "ms"),
            figure("memory at most", told.peak_memory_mib, "MiB"),
            figure("lost", told.check.lost() as f64, "fires"),
            figure("doubled", told.check.doubled as f64, "fires"),
        ]);
        let slowest = told.deletion.map(|slowest| figure("slowest", slowest.as_secs_f64() * 1e3, "ms"));
        figures.extend(slowest);
    }
    Ok(figures)
}

/// Jobs that fire every second.
const JOBS: u64 = 200;
