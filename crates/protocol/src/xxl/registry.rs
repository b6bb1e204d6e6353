//! An executor says that it is there, or that it leaves.

use serde::{Deserialize, Serialize};

use super::lenient;

/// The body of `registry` and `registryRemove`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registry {
    /// Always [`Registry::EXECUTOR`] in practice.
    #[serde(default, deserialize_with = "lenient::text")]
    pub registry_group: String,
    /// The application's name.
    #[serde(default, deserialize_with = "lenient::text")]
    pub registry_key: String,
    /// The executor's address, with or without a path and a slash at its end.
    #[serde(default, deserialize_with = "lenient::text")]
    pub registry_value: String,
}

impl Registry {
    /// The group every executor registers in.
    pub const EXECUTOR: &str = "EXECUTOR";

    /// What an executor of that application at that address says.
    pub fn executor(app: &str, address: &str) -> Registry {
        Registry {
            registry_group: Registry::EXECUTOR.to_owned(),
            registry_key: app.to_owned(),
            registry_value: address.to_owned(),
        }
    }

    /// Reads a body.
    pub fn read(body: &[u8]) -> serde_json::Result<Registry> {
        lenient::object(body)
    }

    /// Whether all three are there; a centre refuses a call where they are not
    /// ([`ILLEGAL_ARGUMENT`](super::texts::ILLEGAL_ARGUMENT)).
    pub fn is_complete(&self) -> bool {
        [&self.registry_group, &self.registry_key, &self.registry_value]
            .iter()
            .all(|text| !text.trim().is_empty())
    }
}
