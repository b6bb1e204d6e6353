//! `tickwright agent`: a ready executor for scripts, URLs and programs. The library does the work; here are its options.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use executor::handlers::{Commands, Http};
use executor::{Executor, Language, Scripts};

use crate::secret;
use crate::terminal::Paint;

/// Runs scripts, calls URLs and starts programs for a scheduling centre, Tickwright's or XXL-JOB's.
///
/// Allowed is nothing by default: scripts, URLs and programs each have an option of their own.
#[derive(Args)]
pub struct Options {
    /// A scheduling centre's address; several nodes in several options, or with commas between.
    #[arg(
        long = "admin",
        env = "TICKWRIGHT_AGENT_ADMIN",
        value_name = "URL",
        value_delimiter = ',',
        required = true
    )]
    admins: Vec<String>,
    /// The token shared with the centre: `file:PATH` names a file that holds it. Best given by the environment.
    #[arg(long, env = TOKEN, hide_env_values = true, value_name = "TOKEN", default_value = "", hide_default_value = true)]
    token: String,
    /// The application, as its group is called in the centre.
    #[arg(long, env = "TICKWRIGHT_AGENT_APP", value_name = "NAME")]
    app: String,
    /// Where to listen. Off loopback, this needs a token that is not well known.
    #[arg(long, env = "TICKWRIGHT_AGENT_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:9999")]
    listen: String,
    /// The URL the centre should call, if it is not the address listened on.
    #[arg(long, env = "TICKWRIGHT_AGENT_ADDRESS", value_name = "URL")]
    address: Option<String>,
    /// Where the journal, logs and working folders are kept. Each agent has its own.
    #[arg(long, env = "TICKWRIGHT_AGENT_DATA_DIR", value_name = "PATH", default_value = "tickwright-agent")]
    data_dir: PathBuf,
    /// Runs scripts written in the centre: in all languages, or in those named (shell, python, python2, php, node,
    /// powershell).
    #[arg(
        long,
        env = "TICKWRIGHT_AGENT_ALLOW_SCRIPTS",
        value_name = "LANGUAGE",
        value_delimiter = ',',
        num_args = 0..,
        require_equals = true,
        default_missing_value = "all"
    )]
    allow_scripts: Vec<String>,
    /// Lets the handler `http` call URLs that begin so, or all on a host.
    #[arg(
        long = "allow-url",
        env = "TICKWRIGHT_AGENT_ALLOW_URL",
        value_name = "PREFIX",
        value_delimiter = ','
    )]
    urls: Vec<String>,
    /// Lets the handler `command` start this program.
    #[arg(
        long = "allow-program",
        env = "TICKWRIGHT_AGENT_ALLOW_PROGRAM",
        value_name = "PATH",
        value_delimiter = ','
    )]
    programs: Vec<PathBuf>,
    /// Shows scripts and programs this variable of the agent's environment.
    #[arg(long = "pass-env", env = "TICKWRIGHT_AGENT_PASS_ENV", value_name = "NAME", value_delimiter = ',')]
    passed: Vec<String>,
    /// How many days run logs are kept; 0 keeps them for ever.
    #[arg(long, env = "TICKWRIGHT_AGENT_LOG_DAYS", value_name = "DAYS", default_value_t = 30)]
    log_days: u32,
    /// How many seconds runs have to end when the agent is told to stop.
    #[arg(long, env = "TICKWRIGHT_AGENT_DRAIN", value_name = "SECONDS", default_value_t = 30)]
    drain: u32,
}

const TOKEN: &str = "TICKWRIGHT_AGENT_TOKEN";

/// Runs until told to stop.
pub fn run(options: Options) -> Result<()> {
    log_to_stderr();
    hide_memory();
    let runtime = tokio::runtime::Runtime::new().context("cannot start the threads")?;
    runtime.block_on(serve(options))
}

async fn serve(options: Options) -> Result<()> {
    if secret::is_typed(&options.token, TOKEN) {
        eprintln!(
            "warning: everybody on this machine can see a token in the command line; set {TOKEN}, or write --token file:PATH"
        );
    }
    let token = secret::read(&options.token)?;
    let scripts = scripts(&options.allow_scripts)?;
    let http = options.urls.iter().try_fold(Http::new(), |http, url| http.allow(url))?;
    let commands =
        options.programs.iter().try_fold(Commands::new(), |commands, path| commands.allow(path))?;
    let may = Abilities::of(&options, scripts.as_ref());

    let mut builder = Executor::builder(&options.app)
        .token(token)
        .listen(&options.listen)
        .directory(&options.data_dir)
        .log_retention(Duration::from_secs(u64::from(options.log_days) * 86_400))
        .jobs(http.jobs())
        .jobs(commands.jobs());
    for admin in &options.admins {
        builder = builder.centre(admin);
    }
    for name in &options.passed {
        builder = builder.pass_env(name);
    }
    if let Some(address) = &options.address {
        builder = builder.address(address);
    }
    if let Some(scripts) = scripts {
        builder = builder.scripts(scripts);
    }
    let executor = builder.start().await?;

    let paint = Paint::stdout();
    say(&paint.bold(&format!("tickwright agent `{}`", options.app)));
    say(&format!("  listens on    {}", paint.green(&executor.local_address().to_string())));
    say(&format!("  registers at  {} as {}", options.admins.join(", "), executor.address()));
    for (what, allowed) in may.rows() {
        let allowed = if allowed.is_empty() { paint.dim("none") } else { allowed.join(", ") };
        say(&format!("  {what:<13} {allowed}"));
    }
    say(&format!("  data in       {}", options.data_dir.display()));

    let stopped = executor.stop_when_told(Duration::from_secs(u64::from(options.drain))).await;
    say(&format!(
        "stopped; {} runs had to be ended, {} results are kept for the next start",
        stopped.killed, stopped.unreported
    ));
    Ok(())
}

/// `all`, or languages by name; none if the option is not given.
fn scripts(words: &[String]) -> Result<Option<Scripts>> {
    match words {
        [] => Ok(None),
        // By the environment one says yes or no, too.
        [word] if ["", "0", "no", "false"].contains(&word.as_str()) => Ok(None),
        [word] if ["all", "1", "yes", "true"].contains(&word.as_str()) => Ok(Some(Scripts::all())),
        words => {
            let languages: Vec<Language> = words.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
            Ok(Some(Scripts::of(languages)))
        }
    }
}

/// What the agent may do, for people.
struct Abilities {
    scripts: Vec<String>,
    urls: Vec<String>,
    programs: Vec<String>,
}

impl Abilities {
    fn of(options: &Options, scripts: Option<&Scripts>) -> Abilities {
        let includes = |language: &Language| scripts.is_some_and(|scripts| scripts.includes(*language));
        Abilities {
            scripts: Language::ALL
                .iter()
                .filter(|language| includes(language))
                .map(Language::to_string)
                .collect(),
            urls: options.urls.clone(),
            programs: options.programs.iter().map(|path| path.display().to_string()).collect(),
        }
    }

    fn rows(&self) -> [(&'static str, &[String]); 3] {
        [("runs scripts", &self.scripts), ("calls URLs", &self.urls), ("starts", &self.programs)]
    }
}

/// Prints a line. Whoever started the agent may have stopped reading; that is no reason to stop working.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

/// Scripts run as the same user, who could otherwise read the token in this process's memory and environment.
fn hide_memory() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        eprintln!(
            "warning: scripts could read this process's memory, which cannot be prevented here: {error}"
        );
    }
}
