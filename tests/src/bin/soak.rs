//! Simulates many seeds, or one with its trace.

use std::sync::Mutex;
use std::time::Instant;

use clap::Parser;
use tickwright_tests::for_each;
use tickwright_tests::sim::{Counts, Setup, simulate};

/// Simulates clusters with random faults and checks the guarantees.
#[derive(Parser)]
struct Arguments {
    /// Number of seeds.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Run only this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Print every event.
    #[arg(long)]
    trace: bool,
}

fn main() {
    let arguments = Arguments::parse();
    let sound = match arguments.seed {
        Some(seed) => play_one(seed, arguments.trace),
        None => play_many(arguments.from, arguments.seeds),
    };
    std::process::exit(i32::from(!sound));
}

fn play_one(seed: u64, traced: bool) -> bool {
    let outcome = simulate(Setup { seed, traced, ..Setup::default() });
    print!("{}", outcome.trace);
    for violation in &outcome.violations {
        println!("seed {seed}: {} is broken: {}", violation.promise, violation.evidence);
    }
    println!("{:?}", outcome.counts);
    outcome.violations.is_empty()
}

fn play_many(from: u64, seeds: u64) -> bool {
    let begun = Instant::now();
    let total = Mutex::new(Counts::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for_each(from, seeds, |seed| {
        let outcome = simulate(Setup { seed, ..Setup::default() });
        for violation in outcome.violations.iter().take(3) {
            println!("\rseed {seed}: {} is broken: {}", violation.promise, violation.evidence);
        }
        let mut total = total.lock().expect("no holder of this lock panics");
        total.add(&outcome.counts);
        if total.seeds % 50 == 0 {
            eprint!(
                "\r{} of {seeds} seeds, {} fires, {} violations ",
                total.seeds, total.fires, total.violations
            );
        }
        true
    });
    let total = total.into_inner().expect("no holder of this lock panics");
    let cpu_hours = begun.elapsed().as_secs_f64() * cores as f64 / 3600.0;
    let hours = total.lasted.as_secs_f64() / 3600.0;
    eprintln!();
    println!(
        "{} seeds, {hours:.1} simulated hours ({:.0} for each of CPU time)",
        total.seeds,
        hours / cpu_hours
    );
    println!("{} fires accepted, {} violations", total.fires, total.violations);
    println!("latest recovery: {} ms", total.worst_recovery);
    for (promise, count) in &total.checked {
        println!("  {promise:<8} checked {count} times");
    }
    total.violations == 0
}
