//! Lenient parsing as in Gson: a number may be a string, and null is the same as absent.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::{Deserialize, de};

/// Parses an object. By default, serde would also accept an array with the fields in order.
pub fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> serde_json::Result<T> {
    match json.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') | None => serde_json::from_slice(json),
        Some(_) => Err(serde_json::Error::custom("expected a JSON object")),
    }
}

/// Integer, as a number or string.
pub fn integer<'de, D: Deserializer<'de>, T: TryFrom<i64>>(from: D) -> Result<T, D::Error> {
    from.deserialize_any(Integer(PhantomData))
}

/// Integer, as a number or string; null is the default.
pub fn integer_or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i64> + Default,
{
    Ok(maybe_integer(from)?.unwrap_or_default())
}

/// Integer, as a number or string, or null.
pub fn maybe_integer<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i64>,
{
    struct OrNull<T>(PhantomData<T>);

    impl<'de, T: TryFrom<i64>> Visitor<'de> for OrNull<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an integer or null")
        }

        fn visit_none<E: Error>(self) -> Result<Option<T>, E> {
            Ok(None)
        }

        fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Option<T>, D::Error> {
            integer(from).map(Some)
        }
    }

    from.deserialize_option(OrNull(PhantomData))
}

/// String; null is the empty string.
pub fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// String, or any other value as JSON text; null is none.
pub fn any_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match serde_json::Value::deserialize(from)? {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}

/// Boolean; null is false.
pub fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

struct Integer<T>(PhantomData<T>);

impl<T: TryFrom<i64>> Visitor<'_> for Integer<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an integer")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        T::try_from(value).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        let signed =
            i64::try_from(value).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))?;
        self.visit_i64(signed)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<T, E> {
        // As strict as JSON: no plus sign, no space, no exponent.
        let digits = value.strip_prefix('-').unwrap_or(value);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(E::invalid_value(Unexpected::Str(value), &self));
        }
        let number = value.parse().map_err(|_| E::invalid_value(Unexpected::Str(value), &self))?;
        self.visit_i64(number)
    }
}
