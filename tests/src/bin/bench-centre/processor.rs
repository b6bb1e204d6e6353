//! Where the time of the processor goes: to the centre, to the executors, which are this process, to all other processes
//! together (the database server, if there is one), or nowhere.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use tickwright_tests::process::Centre;

/// Processor time since the machine was started.
#[derive(Clone, Copy)]
pub struct Times {
    all: Duration,
    idle: Duration,
    centre: Duration,
    executors: Duration,
}

/// Shares of the processor, in percent of all cores.
#[derive(Clone, Copy, Default)]
pub struct Shares {
    pub centre: f64,
    pub executors: f64,
    pub others: f64,
    pub idle: f64,
}

impl Times {
    pub fn read(centre: &Centre) -> Result<Times> {
        let stat = fs::read_to_string("/proc/stat")?;
        let ticks = stat.lines().next().context("no times of the processor")?;
        // User, nice, system, idle, waiting for the disk, interrupts (2), and stolen by other virtual machines.
        let ticks: Vec<u64> =
            ticks.split_whitespace().skip(1).take(8).filter_map(|n| n.parse().ok()).collect();
        let [_, _, _, idle, waiting, ..] = ticks[..] else { anyhow::bail!("/proc/stat has another format") };
        Ok(Times {
            all: time(ticks.iter().sum()),
            idle: time(idle + waiting),
            centre: centre.usage()?.cpu,
            executors: own()?,
        })
    }

    /// Shares between two times.
    pub fn until(self, after: Times) -> Shares {
        let all = (after.all - self.all).as_secs_f64().max(f64::MIN_POSITIVE);
        let share = |before: Duration, after: Duration| (after - before).as_secs_f64() / all * 100.0;
        let centre = share(self.centre, after.centre);
        let executors = share(self.executors, after.executors);
        let idle = share(self.idle, after.idle);
        Shares { centre, executors, idle, others: (100.0 - centre - executors - idle).max(0.0) }
    }
}

/// Processor time of this process.
fn own() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, after_name) = stat.rsplit_once(')').context("a process without a name")?;
    let times = after_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok());
    Ok(time(times.sum()))
}

/// The kernel counts in hundredths of a second.
fn time(ticks: u64) -> Duration {
    Duration::from_millis(ticks * 10)
}
