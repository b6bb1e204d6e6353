//! Measures the time to parse an expression, to find its next fire, and to describe it.
//!
//! Each case is timed in rounds of many calls; the median round is reported, first as a readable table, then as one
//! line of JSON per figure.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tickwright_cron::{Cron, DstRule, Language, Schedule, Timestamp, Zone};

fn main() {
    let mut figures: Vec<(String, f64)> = Vec::new();
    for (name, expr) in EXPRESSIONS {
        for zone in ["UTC", "Asia/Shanghai", "America/New_York"] {
            let (cron, zone): (Cron, Zone) =
                (expr.parse().expect("the cases are right"), zone.parse().expect("the zones exist"));
            figures.push((format!("next/{name}/{zone}"), next_fire(&cron, &zone)));
        }
    }
    for (name, expr) in HOSTILE {
        let (cron, zone): (Cron, Zone) = (
            expr.parse().expect("the cases are right"),
            "America/New_York".parse().expect("the zone exists"),
        );
        let search = || cron.next_after(black_box(START), &zone, DstRule::QUARTZ);
        figures.push((format!("hostile/{name}"), time(|| _ = black_box(search()))));
    }
    for (name, expr) in EXPRESSIONS {
        figures.push((format!("parse/{name}"), time(|| drop(black_box(Cron::parse(black_box(expr)))))));
    }
    let cron = Cron::parse("0 0/15 9-17 ? * MON-FRI").expect("the cases are right");
    figures.push(("describe".to_owned(), time(|| drop(black_box(cron.describe(Language::Chinese))))));
    let rate = Schedule::fixed_rate(START, Duration::from_millis(250)).expect("the cases are right");
    figures.push((
        "next/fixed-rate".to_owned(),
        time(|| _ = black_box(rate.next_after(black_box(Timestamp::from_millis(1_790_000_000_123))))),
    ));

    println!("{:<40} {:>10}", "case", "ns");
    for (case, nanos) in &figures {
        println!("{case:<40} {nanos:>10.0}");
    }
    for (case, nanos) in &figures {
        println!(r#"{{"bench":"cron","case":"{case}","value":{nanos:.1},"unit":"ns"}}"#);
    }
}

const EXPRESSIONS: [(&str, &str); 8] = [
    ("every-second", "* * * * * ?"),
    ("every-5-minutes", "0 0/5 * * * ?"),
    ("nightly", "0 30 2 * * ?"),
    ("office-hours", "0 0/15 9-17 ? * MON-FRI"),
    ("last-workday", "0 15 10 LW * ?"),
    ("third-friday", "0 15 10 ? * 6#3"),
    ("leap-day", "0 0 0 29 2 ?"),
    ("one-year", "0 0 0 1 1 ? 2150"),
];

/// The longest searches: a time that New York's clocks skip in every future year, and a day far in the future.
const HOSTILE: [(&str, &str); 2] =
    [("always-in-a-gap", "0 30 2 ? 3 1#2"), ("far-ahead", "0 0 0 29 2 ? 1972,2196")];

const START: Timestamp = Timestamp::from_millis(1_782_000_000_500);

/// Walks from fire to fire, and begins again at the start when there are no more, so that all seasons are covered.
fn next_fire(cron: &Cron, zone: &Zone) -> f64 {
    let mut t = START;
    time(|| t = black_box(cron.next_after(black_box(t), zone, DstRule::NATURAL)).unwrap_or(START))
}

/// Nanoseconds per call, in the median round.
fn time(mut call: impl FnMut()) -> f64 {
    let mut round = || {
        let started = Instant::now();
        (0..CALLS).for_each(|_| call());
        started.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

const CALLS: u32 = 2_000;
const ROUNDS: usize = 21;
