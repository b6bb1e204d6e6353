//! Logs errors of the store.

/// Logs an error of the store as a warning; at the level `debug` if the database does not respond, because the store
/// itself logs when that begins and ends.
macro_rules! warn_store {
    ($error:expr, $($rest:tt)*) => {
        match $error.is_outage() {
            true => tracing::debug!(error = %$error, $($rest)*),
            false => tracing::warn!(error = %$error, $($rest)*),
        }
    };
}

pub(crate) use warn_store;
