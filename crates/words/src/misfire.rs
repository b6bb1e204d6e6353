//! Misfire policy: how to handle fires that could not be dispatched in time.

use std::time::Duration;

/// Misfire policy: how to handle fires that could not be dispatched in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Misfire {
    /// Dispatch none; each is recorded as skipped.
    #[default]
    Skip,
    /// Dispatch one catch-up run for all of them.
    FireOnce,
    /// Dispatch all fires of a recent period, oldest first.
    FireAll {
        /// Length of the period, in whole milliseconds.
        #[cfg_attr(feature = "serde", serde(rename = "window_ms", with = "crate::millis"))]
        #[cfg_attr(feature = "openapi", schema(value_type = u64))]
        window: Duration,
        /// Maximum number of fires.
        max: u32,
    },
}

impl Misfire {
    /// A fire that is at most this late when a node first sees it is dispatched normally, whatever the policy. The
    /// same value as in XXL-JOB.
    pub const GRACE: Duration = Duration::from_secs(5);

    /// Upper limit of `max` in [`FireAll`](Misfire::FireAll).
    pub const MAX_CATCH_UP: u32 = 1_000;

    /// XXL-JOB's words in its database and its forms.
    pub const STORED_WORDS: [&str; 2] = [DO_NOTHING, FIRE_ONCE_NOW];

    /// XXL-JOB's word. It has two policies; our third one is its "do nothing" there.
    pub fn stored(self) -> &'static str {
        match self {
            Misfire::FireOnce => FIRE_ONCE_NOW,
            Misfire::Skip | Misfire::FireAll { .. } => DO_NOTHING,
        }
    }

    /// Reads XXL-JOB's word.
    pub fn from_stored(word: &str) -> Option<Misfire> {
        match word {
            DO_NOTHING => Some(Misfire::Skip),
            FIRE_ONCE_NOW => Some(Misfire::FireOnce),
            _ => None,
        }
    }
}

const DO_NOTHING: &str = "DO_NOTHING";
const FIRE_ONCE_NOW: &str = "FIRE_ONCE_NOW";
