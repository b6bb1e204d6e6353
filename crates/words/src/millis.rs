//! Durations in JSON: whole milliseconds.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub fn serialize<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX).serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}
