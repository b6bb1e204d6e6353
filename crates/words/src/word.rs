//! The table behind each enum, and the views derived from it.

use std::fmt;

/// A value with a word in the API and a word in the database.
pub trait Word: Copy + Eq + fmt::Debug + 'static {
    /// Noun for error messages, for example `routing strategy`.
    const NOUN: &'static str;

    /// All values in the order in which they are listed, each with its word and its stored word.
    const TABLE: &'static [(Self, &'static str, &'static str)];

    /// All words, in the order of the table.
    const WORDS: &'static [&'static str];

    /// Word in the API, in snake case.
    fn word(self) -> &'static str {
        row(self).1
    }

    /// Word in the database. Where XXL-JOB has a column for the value, it is XXL-JOB's word, which its protocol uses
    /// too.
    fn stored(self) -> &'static str {
        row(self).2
    }

    /// Inverse of [`word`](Word::word).
    fn from_word(word: &str) -> Result<Self, UnknownWord> {
        let found = Self::TABLE.iter().find(|(_, known, _)| *known == word);
        found.map(|(value, ..)| *value).ok_or_else(|| UnknownWord::new::<Self>(word))
    }

    /// Inverse of [`stored`](Word::stored); `None` for a word that another program stored.
    fn from_stored(word: &str) -> Option<Self> {
        Self::TABLE.iter().find(|(.., known)| *known == word).map(|(value, ..)| *value)
    }

    /// All values.
    fn all() -> impl Iterator<Item = Self> {
        Self::TABLE.iter().map(|(value, ..)| *value)
    }

    /// All stored words.
    fn stored_words() -> impl Iterator<Item = &'static str> {
        Self::TABLE.iter().map(|(.., stored)| *stored)
    }
}

fn row<T: Word>(value: T) -> &'static (T, &'static str, &'static str) {
    T::TABLE.iter().find(|(known, ..)| *known == value).expect("the macro adds a row for each variant")
}

/// The text is not a word of the enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord(String);

impl UnknownWord {
    fn new<T: Word>(word: &str) -> UnknownWord {
        let shown: String = word.chars().take(SHOWN_MAX).collect();
        UnknownWord(match T::from_stored(word) {
            // XXL-JOB's words are in upper case, ours never are.
            Some(value) if !word.contains(char::is_lowercase) => {
                format!("`{shown}` is XXL-JOB's word; write `{}`", value.word())
            }
            _ => {
                format!("`{shown}` is not a {}; write one of {}", T::NOUN, T::WORDS.join(", "))
            }
        })
    }
}

/// Maximum length of the unknown word in the error message.
const SHOWN_MAX: usize = 40;

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnknownWord {}

/// Defines an enum as a table: `Variant: "word" / "STORED"`. The stored word is omitted if it is the same. The value
/// after `=` is the default.
macro_rules! words {
    (
        $noun:literal;
        $(#[doc = $doc:literal])+
        pub enum $name:ident $(= $default:ident)? {
            $($(#[doc = $text:literal])+ $variant:ident: $word:literal $(/ $stored:literal)?,)+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $text])+ $variant,)+
        }

        impl $crate::Word for $name {
            const NOUN: &'static str = $noun;
            const TABLE: &'static [(Self, &'static str, &'static str)] =
                &[$(($name::$variant, $word, $crate::word::words!(@stored $word $($stored)?)),)+];
            const WORDS: &'static [&'static str] = &[$($word,)+];
        }

        $(impl Default for $name {
            fn default() -> Self {
                $name::$default
            }
        })?

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad($crate::Word::word(*self))
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            fn from_str(word: &str) -> Result<Self, $crate::UnknownWord> {
                $crate::Word::from_word(word)
            }
        }

        #[cfg(feature = "serde")]
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($crate::Word::word(*self))
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                // JSON Schema has no place for a description of each value.
                let description = concat!(
                    $($doc, "\n",)+
                    $("\n- `", $word, "`:", $($text,)+)+
                );
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::Type::String)
                    .enum_values(Some(<$name as $crate::Word>::WORDS.iter().copied()))
                    .description(Some(description.trim()))
                    .into()
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
        }
    };
    (@stored $word:literal) => { $word };
    (@stored $word:literal $stored:literal) => { $stored };
}

pub(crate) use words;
