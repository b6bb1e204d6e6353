//! `tickwright cron`: explains cron expressions and the rules of timetables.

use std::fmt;
use std::io::{self, Write as _};

use ::cron::{Cron, DstRule, Schedule, Timestamp, Timetable, Zone};
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use jiff::tz::TimeZone;
use timer::{Clock as _, SystemClock};

/// Subcommands of `tickwright cron`.
#[derive(Subcommand)]
pub enum Command {
    /// Describe an expression or a timetable in words, and list its previous and next fires.
    Explain(Explain),
}

/// Prints the explanation to standard output.
pub fn run(command: Command) -> anyhow::Result<()> {
    let answer = match command {
        Command::Explain(explain) => explain.answer(SystemClock::new().now())?,
    };
    match io::stdout().write_all(answer.as_bytes()) {
        // The reader has closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("failed to write the output"),
    }
}

/// Options of `tickwright cron explain`.
#[derive(Args)]
pub struct Explain {
    /// Cron expression in quotes, for example '0 0/15 9-17 ? * MON-FRI'.
    #[arg(required_unless_present = "rules")]
    expr: Option<String>,

    /// Syntax of the expression: quartz begins with seconds, unix is the crontab format.
    #[arg(long, value_enum, default_value_t)]
    dialect: Dialect,

    /// Rule of a timetable instead of an expression, for example 'daily 09:00-17:30 every 30m on Mon-Fri'; may be
    /// repeated.
    #[arg(long = "rule", value_name = "RULE", conflicts_with_all = ["expr", "dialect"])]
    rules: Vec<String>,

    /// Time zone of the expression or rules, for example Europe/London [default: this machine's].
    #[arg(long)]
    zone: Option<Zone>,

    /// Rule for times that daylight saving skips or repeats: quartz, natural, or a combination such as skip-first
    /// [default: natural with --zone or --rule, otherwise quartz].
    #[arg(long, value_name = "RULE")]
    dst: Option<DstRule>,

    /// Number of fires to list.
    #[arg(short = 'n', long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,

    /// Start time, for example 2026-10-24T12:00:00Z [default: now].
    #[arg(long, value_name = "TIME", value_parser = parse_instant)]
    from: Option<Timestamp>,

    /// Language of the description.
    #[arg(long, value_enum, default_value_t)]
    lang: Language,
}

impl Explain {
    fn answer(&self, now: Timestamp) -> anyhow::Result<String> {
        let from = self.from.unwrap_or(now);
        let zone = self.zone.clone().unwrap_or_else(Zone::system);
        // The same defaults as for a job with or without its own zone.
        let is_natural = self.zone.is_some() || self.expr.is_none();
        let dst = self.dst.unwrap_or(if is_natural { DstRule::NATURAL } else { DstRule::QUARTZ });
        let language = self.lang.into();
        let (text, description, schedule) = match &self.expr {
            Some(expr) => {
                let cron = parse(expr, self.dialect)?;
                (cron.to_string(), cron.describe(language), Schedule::cron(cron, zone.clone(), dst))
            }
            None => {
                let timetable = Timetable::parse(&self.rules, &zone, dst)?;
                let text = timetable.to_texts().unwrap_or_default().join("\n");
                let schedule = Schedule::Timetable(timetable);
                (text, schedule.describe(language), schedule)
            }
        };
        let previous = schedule.previous_before(from);
        let next = schedule.iter_from(from).take(self.count.into()).collect();
        let answer =
            Answer { text, description, zone, dst, previous, next, count: self.count, language: self.lang };
        Ok(answer.to_string())
    }
}

fn parse(expr: &str, dialect: Dialect) -> anyhow::Result<Cron> {
    let error = match Cron::parse_in(dialect.into(), expr) {
        Ok(cron) => return Ok(cron),
        Err(error) => error,
    };
    let other = match dialect {
        Dialect::Quartz => Dialect::Unix,
        Dialect::Unix => Dialect::Quartz,
    };
    match (Cron::parse_in(other.into(), expr), other) {
        (Ok(_), Dialect::Unix) => bail!("{error}; for a crontab expression, add `--dialect unix`"),
        (Ok(_), Dialect::Quartz) => bail!("{error}; for a Quartz expression, add `--dialect quartz`"),
        (Err(_), _) => Err(error.into()),
    }
}

fn parse_instant(text: &str) -> Result<Timestamp, String> {
    match text.parse::<jiff::Timestamp>() {
        Ok(at) => Ok(Timestamp::from_millis(at.as_millisecond())),
        Err(_) => Err("expected a date, a time and an offset, for example 2026-10-24T12:00:00Z".to_owned()),
    }
}

/// The printed explanation.
struct Answer {
    /// The expression, or the rules as lines.
    text: String,
    description: String,
    zone: Zone,
    dst: DstRule,
    previous: Option<Timestamp>,
    next: Vec<Timestamp>,
    count: u16,
    language: Language,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.language.words();
        writeln!(f, "{}", self.text)?;
        writeln!(f, "{}", self.description)?;
        writeln!(f, "{}: {}, {}: {}", words.zone, self.zone, words.dst, self.dst)?;

        writeln!(f, "\n{}:", words.previous)?;
        match self.previous {
            Some(fire) => self.write_fire(f, fire)?,
            None => writeln!(f, "  {}", words.never_before)?,
        }
        writeln!(f, "\n{}:", words.next)?;
        for fire in &self.next {
            self.write_fire(f, *fire)?;
        }
        if self.next.len() < self.count.into() {
            writeln!(f, "  {}", words.never_again)?;
        }
        Ok(())
    }
}

impl Answer {
    /// Writes one fire, in the zone's local time and in UTC.
    fn write_fire(&self, f: &mut fmt::Formatter<'_>, fire: Timestamp) -> fmt::Result {
        // Only this machine's own zone can have no name.
        let zone = TimeZone::get(self.zone.name()).unwrap_or_else(|_| TimeZone::system());
        let local = jiff::Timestamp::from_millisecond(fire.as_millis())
            .expect("a fire is between 1970 and 2199")
            .to_zoned(zone);
        let weekday = usize::from(local.weekday().to_monday_zero_offset().unsigned_abs());
        let weekday = self.language.words().weekdays[weekday];
        writeln!(f, "  {weekday} {}  {fire}", local.strftime("%Y-%m-%d %H:%M:%S %:z"))
    }
}

/// Cron syntaxes, as option values.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Dialect {
    #[default]
    Quartz,
    Unix,
}

impl From<Dialect> for ::cron::Dialect {
    fn from(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Quartz => ::cron::Dialect::Quartz,
            Dialect::Unix => ::cron::Dialect::Unix,
        }
    }
}

/// Languages of the output, as option values.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Language {
    #[default]
    En,
    Zh,
}

impl From<Language> for ::cron::Language {
    fn from(language: Language) -> Self {
        match language {
            Language::En => ::cron::Language::English,
            Language::Zh => ::cron::Language::Chinese,
        }
    }
}

/// Translated texts besides the description.
struct Words {
    zone: &'static str,
    dst: &'static str,
    previous: &'static str,
    never_before: &'static str,
    next: &'static str,
    never_again: &'static str,
    /// Starting with Monday.
    weekdays: [&'static str; 7],
}

impl Language {
    fn words(self) -> Words {
        match self {
            Language::En => Words {
                zone: "zone",
                dst: "daylight-saving rule",
                previous: "previous fire",
                never_before: "none since 1970",
                next: "next fires",
                never_again: "no more until 2200",
                weekdays: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
            },
            Language::Zh => Words {
                zone: "时区",
                dst: "夏令时规则",
                previous: "上次触发",
                never_before: "自 1970 年以来没有",
                next: "接下来的触发",
                never_again: "直到 2200 年不再触发",
                weekdays: ["周一", "周二", "周三", "周四", "周五", "周六", "周日"],
            },
        }
    }
}
