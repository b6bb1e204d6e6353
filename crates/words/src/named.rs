//! Words that other programs may have written.

use std::fmt;

use crate::word::{UnknownWord, Word};

/// A value, or a word that is not in our table: XXL-JOB's columns may hold the words of a fork, which are kept as they
/// are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named<T> {
    /// A value of the table.
    Known(T),
    /// Another program's word.
    Other(String),
}

impl<T: Word> Named<T> {
    /// Reads a column or a field of XXL-JOB's protocol.
    pub fn from_stored(word: &str) -> Named<T> {
        T::from_stored(word).map_or_else(|| Named::Other(word.to_owned()), Named::Known)
    }

    /// Word for a column or a field of XXL-JOB's protocol.
    pub fn stored(&self) -> &str {
        match self {
            Named::Known(value) => value.stored(),
            Named::Other(word) => word,
        }
    }

    /// Reads a word of the API. A stored word is another program's word here.
    pub fn from_word(word: &str) -> Named<T> {
        T::from_word(word).map_or_else(|_| Named::Other(word.to_owned()), Named::Known)
    }

    /// Word in the API.
    pub fn word(&self) -> &str {
        match self {
            Named::Known(value) => value.word(),
            Named::Other(word) => word,
        }
    }

    /// The value, if it is known.
    pub fn known(&self) -> Option<T> {
        match self {
            Named::Known(value) => Some(*value),
            Named::Other(_) => None,
        }
    }

    /// The value; an error that lists the words if it is not known.
    pub fn check(&self) -> Result<T, UnknownWord> {
        match self {
            Named::Known(value) => Ok(*value),
            Named::Other(word) => T::from_word(word),
        }
    }
}

impl<T: Default> Default for Named<T> {
    fn default() -> Self {
        Named::Known(T::default())
    }
}

impl<T> From<T> for Named<T> {
    fn from(value: T) -> Self {
        Named::Known(value)
    }
}

impl<T: PartialEq> PartialEq<T> for Named<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Named::Known(value) if value == other)
    }
}

impl<T: Word> fmt::Display for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

#[cfg(feature = "serde")]
impl<T: Word> serde::Serialize for Named<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

#[cfg(feature = "serde")]
impl<'de, T: Word> serde::Deserialize<'de> for Named<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Ok(Named::from_word(&word))
    }
}
