//! Registration and deregistration of executors.

use serde::{Deserialize, Serialize};

use super::lenient;

/// Body of `registry` and `registryRemove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registry {
    /// Always [`Registry::EXECUTOR`] in practice.
    #[serde(default, deserialize_with = "lenient::text")]
    pub registry_group: String,
    /// Name of the app.
    #[serde(default, deserialize_with = "lenient::text")]
    pub registry_key: String,
    /// Address of the executor, with or without a path and a trailing slash.
    #[serde(default, deserialize_with = "lenient::text")]
    pub registry_value: String,
}

impl Registry {
    /// Group of all executors.
    pub const EXECUTOR: &str = "EXECUTOR";

    /// Registration of an executor.
    pub fn executor(app: &str, address: &str) -> Registry {
        Registry {
            registry_group: Registry::EXECUTOR.to_owned(),
            registry_key: app.to_owned(),
            registry_value: address.to_owned(),
        }
    }

    /// Parses a body.
    pub fn read(body: &[u8]) -> serde_json::Result<Registry> {
        lenient::object(body)
    }

    /// Whether all three fields are set; otherwise the scheduling centre rejects the call
    /// ([`ILLEGAL_ARGUMENT`](super::texts::ILLEGAL_ARGUMENT)).
    pub fn is_complete(&self) -> bool {
        [&self.registry_group, &self.registry_key, &self.registry_value]
            .iter()
            .all(|text| !text.trim().is_empty())
    }
}
