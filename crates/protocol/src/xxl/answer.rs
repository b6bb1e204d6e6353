//! Response to every call: a code, a message, and a payload in one of two fields.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{CODE_FAIL, CODE_LATER, CODE_OK, lenient};

/// Response in either direction.
///
/// It is written with the payload in both fields, so that clients of every lineage find it:
///
/// ```
/// use tickwright_protocol::xxl::Answer;
///
/// assert_eq!(Answer::ok().to_json(), r#"{"code":200,"msg":"Success","content":null,"data":null}"#);
/// let answer = Answer::read(br#"{"code":"500","msg":"boom"}"#)?;
/// assert!(!answer.is_ok());
/// assert_eq!(answer.message(), "boom");
/// # Ok::<(), tickwright_protocol::xxl::AnswerError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// 200, or an error code.
    pub code: i32,
    /// Message for people; some clients match its text.
    pub msg: Option<String>,
    /// Result of the call. Must be a string or null, except in the response to `/log`.
    pub payload: Value,
}

impl Answer {
    /// Success without a payload.
    pub fn ok() -> Answer {
        Answer::with(Value::Null)
    }

    /// Success with a payload.
    pub fn with(payload: Value) -> Answer {
        Answer { code: CODE_OK, msg: Some("Success".to_owned()), payload }
    }

    /// Failure with a message.
    pub fn fail(msg: impl Into<String>) -> Answer {
        Answer { code: CODE_FAIL, msg: Some(msg.into()), payload: Value::Null }
    }

    /// Temporary failure with a message; the caller may retry.
    pub fn later(msg: impl Into<String>) -> Answer {
        Answer { code: CODE_LATER, ..Answer::fail(msg) }
    }

    /// Whether the code is [`CODE_OK`].
    pub fn is_ok(&self) -> bool {
        self.code == CODE_OK
    }

    /// The message, empty if there is none.
    pub fn message(&self) -> &str {
        self.msg.as_deref().unwrap_or_default()
    }

    /// Payload converted to `T`, if it has that type.
    pub fn payload_as<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(&self.payload).ok()
    }

    /// Serializes it to a body that every lineage can read.
    pub fn to_json(&self) -> String {
        let written = Written {
            code: self.code,
            msg: self.msg.as_deref(),
            content: &self.payload,
            data: &self.payload,
        };
        serde_json::to_string(&written).expect("texts and values can be serialized")
    }

    /// Parses a response of any lineage. The payload is `data`, else `content`; a missing code is a failure.
    pub fn read(body: &[u8]) -> Result<Answer, AnswerError> {
        let read: Read = lenient::object(body).map_err(|error| AnswerError(error.to_string()))?;
        let payload = if read.data.is_null() { read.content } else { read.data };
        Ok(Answer { code: read.code, msg: read.msg, payload })
    }
}

/// The body is not a JSON object, or its code is not a number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the response is not of this protocol ({0}); check the address")]
pub struct AnswerError(String);

#[derive(Serialize)]
struct Written<'a> {
    code: i32,
    msg: Option<&'a str>,
    content: &'a Value,
    data: &'a Value,
}

#[derive(Deserialize)]
struct Read {
    #[serde(default, deserialize_with = "lenient::integer_or_default")]
    code: i32,
    #[serde(default)]
    msg: Option<String>,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    data: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_every_lineage_are_read() {
        check(r#"{"code":200}"#, 200, "", Value::Null);
        check(r#"{"code":200,"msg":null,"content":null}"#, 200, "", Value::Null);
        check(r#"{"code":200,"msg":null,"content":"7"}"#, 200, "", "7".into());
        check(r#"{"code":200,"data":"7","msg":"Success","success":true}"#, 200, "Success", "7".into());
        check(r#"{"code":200,"data":null,"content":"old"}"#, 200, "", "old".into());
        check(r#"{"code":"200","data":"new","content":"old"}"#, 200, "", "new".into());
        check(r#"{"msg":"no code"}"#, 0, "no code", Value::Null);
    }

    fn check(body: &str, code: i32, msg: &str, payload: Value) {
        let answer = Answer::read(body.as_bytes()).unwrap();
        assert_eq!((answer.code, answer.message(), &answer.payload), (code, msg, &payload), "{body}");
    }

    #[test]
    fn what_is_no_answer_is_an_error_and_not_a_crash() {
        for body in ["", "null", "[]", "[{\"code\":200}]", "<html>", r#"{"code":"ok"}"#, r#"{"code":2e2}"#] {
            assert!(Answer::read(body.as_bytes()).is_err(), "{body}");
        }
    }
}
