//! `tickwright doctor`: checks the configuration and environment of a scheduling centre with these options.

use std::io::IsTerminal;

use anyhow::Context;
use server::doctor::{Finding, Health, examine};

use crate::serve::Options;

/// Prints one line per finding; returns true if nothing is wrong.
pub fn run(options: Options) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("failed to start the threads")?;
    let findings = match options.with_file().and_then(|options| options.settings_to_look_at()) {
        Ok(settings) => runtime.block_on(examine(&settings)),
        Err(error) => {
            vec![Finding::bad(format!("{error:#}"), "correct the option; `--help` lists all options")]
        }
    };
    let colour = std::io::stdout().is_terminal();
    for finding in &findings {
        println!("{}", line(finding, colour));
    }
    Ok(findings.iter().all(|finding| finding.health != Health::Bad))
}

/// Formats one finding: its status, the observation, and below it the suggested fix.
fn line(finding: &Finding, colour: bool) -> String {
    let (word, code) = match finding.health {
        Health::Good => ("ok   ", 32),
        Health::Weak => ("warn ", 33),
        Health::Bad => ("fail ", 31),
    };
    let word = if colour { format!("\x1b[{code}m{word}\x1b[0m") } else { word.to_owned() };
    let advice = finding.advice.iter().map(|advice| format!("\n       -> {advice}")).collect::<String>();
    format!("{word}  {}{advice}", finding.what)
}
