//! When a job fires.

use serde::{Deserialize, Serialize};

use super::Instant;

/// The rule for when, told apart by `kind`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// By a cron expression.
    Cron {
        /// The expression.
        expression: String,
        /// How it is written.
        #[serde(default)]
        dialect: CronDialect,
        /// Whose clocks it speaks of, as an IANA name; the centre's own zone if left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        zone: Option<String>,
        /// What to do when those clocks change: `natural`, `quartz`, or `skip` or `next`, a dash, and `first`, `second` or
        /// `both`. If left out: `natural` with a zone of its own, `quartz` without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dst: Option<String>,
    },
    /// Always the same time from one fire to the next.
    FixedRate {
        /// That time.
        every_ms: u64,
        /// One of its fires, to which all others keep their distance; now if left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
        anchor: Option<Instant>,
    },
    /// A while after the last run ended.
    FixedDelay {
        /// That while.
        delay_ms: u64,
    },
    /// At one instant.
    Once {
        /// That instant.
        #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
        at: Instant,
    },
    /// Only when someone, or another job, triggers it.
    None,
}

/// How a cron expression is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CronDialect {
    /// Six or seven fields, seconds first.
    #[default]
    Quartz,
    /// Five fields, minutes first.
    Unix,
}

/// A schedule that somebody thinks about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {
    /// The schedule.
    pub schedule: Schedule,
    /// From when on; now if left out.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub after: Option<Instant>,
    /// How many fires, at most 1000; 10 if left out.
    #[serde(default)]
    pub count: Option<usize>,
}

/// What a schedule means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Preview {
    /// In English words,
    pub english: String,
    /// and in Chinese ones.
    pub chinese: String,
    /// The zone that counts.
    pub zone: String,
    /// The next fires.
    pub fires: Vec<PreviewFire>,
}

/// A fire to come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PreviewFire {
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Instant,
    /// The same on the clocks of the schedule's zone: `2026-06-21T10:00:00+02:00`.
    pub local: String,
    /// Those clocks were changed since the fire before.
    pub clock_changed: bool,
}
