//! Replicated databases that people run: `make ha`.
//!
//! `scripts/databases` starts a Galera cluster, or PostgreSQL under Patroni. Three centres use it while its servers and
//! the centres are killed, paused and restarted. The table shows for each story how many fires were due, sent, lost,
//! duplicated and unexplained, and how late the latest was; the lines of JSON have the same numbers.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use tickwright_tests::Figure;
use tickwright_tests::ha::{Size, Story, tell};
use tickwright_tests::process::{Members, Replicated};

/// Breaks replicated databases.
#[derive(Parser)]
struct Options {
    /// Time from the first fire to the last of each story, in seconds.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Jobs that fire every second.
    #[arg(long, default_value_t = 60)]
    jobs: u64,
    /// Only this story, by its name in the table.
    #[arg(long)]
    story: Option<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let size = Size { jobs: options.jobs, length: Duration::from_secs(options.seconds) };
    let is_wanted = |story: &Story| {
        options.story.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(&format!("{story:?}")))
    };
    let mut figures = Vec::new();
    let mut broken = 0;
    for kind in [Replicated::Galera, Replicated::Patroni] {
        let Some(mut members) = Members::of(kind)? else { continue };
        let is_synchronous = members.are_synchronous();
        let stories = Story::ALL.into_iter().filter(|story| story.fits(kind, is_synchronous));
        for story in stories.filter(is_wanted) {
            let told = tell(story, &mut members, size).await?;
            println!("{:<8} {told}", kind.name());
            if !told.is_kept() {
                println!("{}", told.check);
                broken += 1;
            }
            let mut figure = |case: &str, value: f64, unit| {
                figures.push(Figure::new(
                    "ha",
                    kind.name(),
                    &format!("{story:?} {case}").to_lowercase(),
                    value,
                    unit,
                ));
            };
            figure("due", told.check.due as f64, "fires");
            figure("sent", told.check.sent as f64, "fires");
            figure("lost", told.check.lost() as f64, "fires");
            figure("doubled", told.check.doubled as f64, "fires");
            figure("silent", told.check.silent as f64, "fires");
            figure("latest", told.timing.max, "ms");
            if story == Story::LoseCommits {
                figure("lost by the database", told.lost_runs as f64, "runs");
                figure("not named in an alert", told.unnamed as f64, "runs");
            }
        }
        members.end().await?;
    }
    for figure in figures {
        println!("{}", figure.json());
    }
    ensure!(broken == 0, "{broken} stories broke a promise");
    Ok(())
}
