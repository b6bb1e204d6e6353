//! `tickwright agent`: options of the ready-made executor for scripts, URLs and programs. A library implements it.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use executor::handlers::{Commands, Http};
use executor::{Executor, Language, Scripts};

use crate::secret;
use crate::terminal::Paint;

/// Run an executor for scripts, URLs and programs, for a scheduling centre of Tickwright or XXL-JOB.
///
/// By default nothing is allowed: scripts, URLs and programs each have their own option.
#[derive(Args)]
pub struct Options {
    /// Address of the scheduling centre; repeat the option or use commas for several nodes.
    #[arg(
        long = "admin",
        env = "TICKWRIGHT_AGENT_ADMIN",
        value_name = "URL",
        value_delimiter = ',',
        required = true
    )]
    admins: Vec<String>,
    /// Token shared with the scheduling centre, or `file:PATH`. Preferably set it in the environment.
    #[arg(long, env = TOKEN, hide_env_values = true, value_name = "TOKEN", default_value = "", hide_default_value = true)]
    token: String,
    /// Name of the app that the agent registers for (XXL-JOB: AppName).
    #[arg(long, env = "TICKWRIGHT_AGENT_APP", value_name = "NAME")]
    app: String,
    /// Address to listen on. Outside loopback, a token that is not well known is required.
    #[arg(long, env = "TICKWRIGHT_AGENT_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:9999")]
    listen: String,
    /// URL that the scheduling centre calls, if it differs from the listen address.
    #[arg(long, env = "TICKWRIGHT_AGENT_ADDRESS", value_name = "URL")]
    address: Option<String>,
    /// Directory of the journal, logs and working directories. Each agent needs its own.
    #[arg(long, env = "TICKWRIGHT_AGENT_DATA_DIR", value_name = "DIR", default_value = "tickwright-agent")]
    data_dir: PathBuf,
    /// Allow scripts from the scheduling centre: in all languages, or in those listed (shell, python, python2, php,
    /// node, powershell).
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
    /// URL prefix or host that the handler `http` may call.
    #[arg(
        long = "allow-url",
        env = "TICKWRIGHT_AGENT_ALLOW_URL",
        value_name = "PREFIX",
        value_delimiter = ','
    )]
    urls: Vec<String>,
    /// Program that the handler `command` may start.
    #[arg(
        long = "allow-program",
        env = "TICKWRIGHT_AGENT_ALLOW_PROGRAM",
        value_name = "PATH",
        value_delimiter = ','
    )]
    programs: Vec<PathBuf>,
    /// Environment variable to pass to scripts and programs.
    #[arg(long = "pass-env", env = "TICKWRIGHT_AGENT_PASS_ENV", value_name = "NAME", value_delimiter = ',')]
    passed: Vec<String>,
    /// Days to keep logs of runs; 0 keeps them forever.
    #[arg(long, env = "TICKWRIGHT_AGENT_LOG_DAYS", value_name = "DAYS", default_value_t = 30)]
    log_days: u32,
    /// Seconds that runs may take to finish when the agent is stopped.
    #[arg(long, env = "TICKWRIGHT_AGENT_DRAIN", value_name = "SECONDS", default_value_t = 30)]
    drain: u32,
}

const TOKEN: &str = "TICKWRIGHT_AGENT_TOKEN";

/// Runs until it receives a stop signal.
pub fn run(options: Options) -> Result<()> {
    log_to_stderr();
    hide_memory();
    let runtime = tokio::runtime::Runtime::new().context("failed to start the threads")?;
    runtime.block_on(serve(options))
}

async fn serve(options: Options) -> Result<()> {
    if secret::is_typed(&options.token, TOKEN) {
        eprintln!(
            "warning: a token on the command line is visible to every user of this machine; set {TOKEN}, or \
             use --token file:PATH"
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
    say(&format!("  listening on      {}", paint.green(&executor.local_address().to_string())));
    say(&format!("  registering with  {} as {}", options.admins.join(", "), executor.address()));
    for (what, allowed) in may.rows() {
        let allowed = if allowed.is_empty() { paint.dim("none") } else { allowed.join(", ") };
        say(&format!("  {what:<17} {allowed}"));
    }
    say(&format!("  data directory    {}", options.data_dir.display()));

    let stopped = executor.stop_when_told(Duration::from_secs(u64::from(options.drain))).await;
    say(&format!(
        "stopped; {} runs were terminated, {} results are stored and will be reported after the next start",
        stopped.killed, stopped.unreported
    ));
    Ok(())
}

/// Parses `all` or a list of languages; none if the option is not given.
fn scripts(words: &[String]) -> Result<Option<Scripts>> {
    match words {
        [] => Ok(None),
        // An environment variable may also be a boolean.
        [word] if ["", "0", "no", "false"].contains(&word.as_str()) => Ok(None),
        [word] if ["all", "1", "yes", "true"].contains(&word.as_str()) => Ok(Some(Scripts::all())),
        words => {
            let languages: Vec<Language> = words.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
            Ok(Some(Scripts::of(languages)))
        }
    }
}

/// Allowed scripts, URLs and programs, for the start message.
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
        [("scripts", &self.scripts), ("URLs", &self.urls), ("programs", &self.programs)]
    }
}

/// Prints a line, ignoring errors: a closed pipe is no reason to stop working.
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

/// Prevents scripts, which run as the same user, from reading the token in this process's memory and environment.
fn hide_memory() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        eprintln!("warning: failed to protect the memory of this process from scripts: {error}");
    }
}
