//! I16: under overload every job gets a fair share, and every fire is accounted for.

use std::collections::BTreeMap;
use std::time::Duration;

use tickwright_tests::sim::{LOAD_DROPS_AT, Served, overload};

#[test]
fn under_twice_the_load_no_job_is_favoured_and_nothing_is_silent() {
    let served = overload(1);
    for job in &served {
        assert_eq!(job.arrived.len() as u64 + job.unsent, job.due, "all instants are accounted for: {job:?}");
    }
    let busy: Vec<(f64, f64)> = served.iter().flat_map(|job| during(job, |at| at <= LOAD_DROPS_AT)).collect();
    let overdue = busy.iter().filter(|(_, late)| *late > 1_000.0).count();
    assert!(overdue * 2 > busy.len(), "it was an overload: {overdue} of {} were late", busy.len());

    let mut classes: BTreeMap<Duration, Vec<&Served>> = BTreeMap::new();
    for job in &served {
        classes.entry(job.period).or_default().push(job);
    }
    for (period, jobs) in classes {
        let got = |job: &Served| during(job, |at| at <= LOAD_DROPS_AT).count() as f64;
        let mean = jobs.iter().map(|job| got(job)).sum::<f64>() / jobs.len() as f64;
        for job in jobs {
            let off = (got(job) - mean).abs();
            assert!(off <= mean * 0.1, "{} of {period:?} got {}, the mean is {mean:.1}", job.job, got(job));
        }
    }
    let rho = correlation(&busy);
    assert!(rho.abs() < 0.05, "lateness does not depend on the id: {rho:.3}");

    let mut after: Vec<f64> = served
        .iter()
        .flat_map(|job| during(job, |at| at > LOAD_DROPS_AT + RELIEF))
        .map(|(_, late)| late)
        .collect();
    after.sort_by(f64::total_cmp);
    let p99 = after[after.len() * 99 / 100];
    assert!(p99 < 100.0, "ten seconds after the load has dropped, fires are {p99} ms late");
}

/// Time after the load has dropped until everything is back to normal, in milliseconds.
const RELIEF: i64 = 10_000;

/// Job id and lateness of each fire with a matching scheduled time.
fn during(job: &Served, such: impl Fn(i64) -> bool) -> impl Iterator<Item = (f64, f64)> {
    let arrived = job.arrived.iter().filter(move |(at, _)| such(*at));
    arrived.map(|(_, late)| (job.job.0 as f64, *late as f64))
}

/// Pearson correlation coefficient.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let (x, y) = pairs.iter().fold((0.0, 0.0), |(x, y), pair| (x + pair.0 / count, y + pair.1 / count));
    let products =
        pairs.iter().map(|pair| ((pair.0 - x) * (pair.1 - y), (pair.0 - x).powi(2), (pair.1 - y).powi(2)));
    let (xy, xx, yy) =
        products.fold((0.0, 0.0, 0.0), |sum, add| (sum.0 + add.0, sum.1 + add.1, sum.2 + add.2));
    xy / (xx * yy).sqrt()
}
