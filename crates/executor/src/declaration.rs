//! Declared jobs: the program describes the job, and the centre creates it.

use std::time::Duration;

use protocol::declare::DeclaredJob;
use protocol::v1::{CronDialect, Named, Route, Schedule};
use timer::{Cron, DstRule, Timetable, Zone};

use crate::error::Error;

/// A job that calls a handler. The centre adds it when the program first starts and updates it later from the
/// program, except for fields that users changed in the centre: those keep the user's value and are shown as
/// overridden.
///
/// ```
/// use std::time::Duration;
/// use tickwright_executor::{Context, Declaration, Job};
///
/// let sync = Job::new("sync-orders", |_: Context| async { "synced" })
///     .declare(Declaration::cron("0 0/5 * * * ?").zone("Asia/Shanghai").name("Sync orders").retries(2));
/// let poll = Job::new("poll", |_: Context| async {})
///     .declare(Declaration::fixed_delay(Duration::from_secs(30)).timeout(Duration::from_secs(10)));
/// # drop((sync, poll));
/// ```
///
/// Invalid declarations are rejected when the executor starts; in [`#[job]`](crate::job), at compile time.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a declaration has no effect until it is added to a job"]
pub struct Declaration {
    schedule: Schedule,
    name: Option<String>,
    param: Option<String>,
    timeout: Option<Duration>,
    retries: Option<u32>,
    route: Option<Named<Route>>,
}

impl Declaration {
    /// Fires by a Quartz cron expression with six or seven fields, seconds first, in the centre's time zone unless
    /// [another](Declaration::zone) is given.
    pub fn cron(expression: impl Into<String>) -> Declaration {
        let expression = expression.into();
        Declaration::of(Schedule::Cron { expression, dialect: CronDialect::Quartz, zone: None, dst: None })
    }

    /// Fires by the rules of a timetable, when one of them does, in the centre's time zone unless
    /// [another](Declaration::zone) is given. [`Timetable::parse`] describes the rules.
    ///
    /// ```
    /// use tickwright_executor::Declaration;
    ///
    /// let office_hours = ["daily 09:00-17:30 every 30m on Mon-Fri", "workday -1 of month at 18:00"];
    /// let report = Declaration::timetable(office_hours).zone("Europe/Berlin");
    /// # drop(report);
    /// ```
    pub fn timetable(rules: impl IntoIterator<Item = impl Into<String>>) -> Declaration {
        let rules = rules.into_iter().map(Into::into).collect();
        Declaration::of(Schedule::Timetable { rules, zone: None, dst: None })
    }

    /// Fires at a fixed interval, for example every 30 s.
    pub fn fixed_rate(period: Duration) -> Declaration {
        Declaration::of(Schedule::FixedRate { every_ms: millis(period), anchor: None })
    }

    /// Fires this long after the end of the last run.
    pub fn fixed_delay(delay: Duration) -> Declaration {
        Declaration::of(Schedule::FixedDelay { delay_ms: millis(delay) })
    }

    fn of(schedule: Schedule) -> Declaration {
        Declaration { schedule, name: None, param: None, timeout: None, retries: None, route: None }
    }

    /// Time zone of a cron expression or timetable, as an IANA name such as `Asia/Shanghai`. Ignored for fixed rates
    /// and delays.
    pub fn zone(mut self, name: impl Into<String>) -> Declaration {
        if let Schedule::Cron { zone, .. } | Schedule::Timetable { zone, .. } = &mut self.schedule {
            *zone = Some(name.into());
        }
        self
    }

    /// Display name of the job. Default: the handler's name.
    pub fn name(mut self, name: impl Into<String>) -> Declaration {
        self.name = Some(name.into());
        self
    }

    /// Parameter for the handler.
    pub fn param(mut self, param: impl Into<String>) -> Declaration {
        self.param = Some(param.into());
        self
    }

    /// Timeout of a run; a longer run is stopped.
    pub fn timeout(mut self, timeout: Duration) -> Declaration {
        self.timeout = Some(timeout);
        self
    }

    /// Number of retries of a failed run.
    pub fn retries(mut self, count: u32) -> Declaration {
        self.retries = Some(count);
        self
    }

    /// Routing strategy, for example `round_robin`, `failover` or `broadcast`.
    pub fn route(mut self, route: impl AsRef<str>) -> Declaration {
        self.route = Some(Named::from_word(route.as_ref()));
        self
    }

    /// The message for the centre; fails if the declaration is invalid.
    pub(crate) fn of_handler(&self, handler: &str) -> Result<DeclaredJob, Error> {
        self.check().map_err(|why| Error::Declaration { handler: handler.to_owned(), why })?;
        Ok(DeclaredJob {
            handler: handler.to_owned(),
            schedule: self.schedule.clone(),
            name: self.name.clone(),
            param: self.param.clone(),
            timeout_ms: self.timeout.map(millis),
            retries: self.retries,
            route: self.route.clone(),
        })
    }

    fn check(&self) -> Result<(), String> {
        match &self.schedule {
            Schedule::Cron { expression, zone, .. } => {
                Cron::parse(expression).map_err(|error| error.to_string())?;
                zone.as_deref().map(Zone::parse).transpose().map_err(|error| error.to_string())?;
            }
            Schedule::Timetable { rules, zone, .. } => {
                let zone = zone.as_deref().map(Zone::parse).transpose().map_err(|error| error.to_string())?;
                let zone = zone.unwrap_or_else(Zone::utc);
                Timetable::parse(rules, &zone, DstRule::NATURAL).map_err(|error| error.to_string())?;
            }
            Schedule::FixedRate { every_ms: 0, .. } | Schedule::FixedDelay { delay_ms: 0 } => {
                return Err("the interval must be at least 1 ms".to_owned());
            }
            _ => {}
        }
        match self.timeout {
            Some(timeout) if millis(timeout) == 0 => {
                Err("the timeout must be at least 1 ms; omit it for no timeout".to_owned())
            }
            _ => Ok(()),
        }
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_right_is_refused_and_says_why() {
        let check = |declaration: Declaration, expected: &str| {
            let error = declaration.of_handler("sync").unwrap_err().to_string();
            assert!(error.contains("`sync`") && error.contains(expected), "{error}");
        };
        check(Declaration::cron("0 0 25 * * ?"), "25");
        check(Declaration::cron("0 0 2 * * ?").zone("Europe/Lodnon"), "Lodnon");
        check(
            Declaration::timetable(["workday 1 of month at 9:00", "hourly"]),
            "rule 2: `hourly` is not a rule",
        );
        check(Declaration::timetable(["workday 1 of month at 9:00"]).zone("Europe/Lodnon"), "Lodnon");
        check(Declaration::fixed_rate(Duration::ZERO), "at least 1 ms");
        check(Declaration::fixed_delay(Duration::from_micros(10)), "at least 1 ms");
        check(Declaration::fixed_delay(Duration::from_secs(1)).timeout(Duration::ZERO), "omit it");
    }

    #[test]
    fn what_is_said_is_told() {
        let said = Declaration::cron("0 0/5 * * * ?")
            .zone("Asia/Shanghai")
            .name("Sync orders")
            .param("all")
            .timeout(Duration::from_secs(90))
            .retries(2)
            .route("round_robin");
        let told = serde_json::to_string(&said.of_handler("sync").unwrap()).unwrap();
        assert_eq!(
            told,
            r#"{"handler":"sync","schedule":{"kind":"cron","expression":"0 0/5 * * * ?","dialect":"quartz","zone":"Asia/Shanghai"},"name":"Sync orders","param":"all","timeout_ms":90000,"retries":2,"route":"round_robin"}"#
        );
    }
}
