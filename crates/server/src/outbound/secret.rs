//! A value that is sent but never printed.

use std::fmt;

/// A token. Its value never appears in logs, errors or debug output of the types that hold it.
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

    /// Returns the value, for the one place that sends it.
    pub fn value(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
