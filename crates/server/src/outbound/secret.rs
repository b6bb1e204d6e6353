//! A value that is sent and never shown.

use std::fmt;

/// A token. It has no text: not in logs, not in errors, not in dumps of whoever holds it.
///
/// ```
/// use tickwright_server::outbound::Secret;
///
/// let token = Secret::new("p2Vq0mXo5tYb");
/// assert_eq!(format!("{token:?}"), "Secret(…)");
/// ```
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Secret {
        Secret(value.into())
    }

    /// The value, for the one place that sends it.
    pub fn value(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
