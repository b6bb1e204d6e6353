//! How late fires are while bad input comes from all sides: `make bench-hostile`.

use std::time::Duration;

use anyhow::Result;
use tickwright_tests::Figure;
use tickwright_tests::database::Database;
use tickwright_tests::hostile::Story;

/// In peace first, then attacked.
pub async fn measure(database: &Database, seconds: u64) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (case, attacked) in [("in peace", false), ("attacked", true)] {
        let told =
            Story { jobs: JOBS, length: Duration::from_secs(seconds), attacked }.play(database).await?;
        println!("{:<10} {case:<8} {told}", database.name());
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
    }
    Ok(figures)
}

/// Fires each second.
const JOBS: u64 = 200;
