//! Lateness of fires while hostile input is sent to every endpoint: `make bench-hostile`.

use std::time::Duration;

use anyhow::Result;
use tickwright_tests::Figure;
use tickwright_tests::database::Database;
use tickwright_tests::hostile::{Disturbance, Scenario};

/// Measures undisturbed, with hostile input, and while the jobs of another app are deleted.
pub async fn measure(database: &Database, seconds: u64) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let cases = [
        ("in peace", Disturbance::None),
        ("attacked", Disturbance::BadInput),
        ("deletions", Disturbance::Deletions),
    ];
    for (case, disturbance) in cases {
        let result =
            Scenario { jobs: JOBS, length: Duration::from_secs(seconds), disturbance }.run(database).await?;
        println!("{:<10} {case:<9} {result}", database.name());
        let figure = |what: &str, value, unit| {
            Figure::new("hostile", database.name(), &format!("{case} {what}"), value, unit)
        };
        figures.extend([
            figure("lateness p50", result.timing.p50, "ms"),
            figure("lateness p99", result.timing.p99, "ms"),
            figure("lateness max", result.timing.max, "ms"),
            figure("memory at most", result.peak_memory_mib, "MiB"),
            figure("lost", result.check.lost() as f64, "fires"),
            figure("doubled", result.check.doubled as f64, "fires"),
        ]);
        let slowest = result.deletion.map(|slowest| figure("slowest", slowest.as_secs_f64() * 1e3, "ms"));
        figures.extend(slowest);
    }
    Ok(figures)
}

/// Jobs that fire every second.
const JOBS: u64 = 200;
