//! Executors report results of runs, in one of three body formats.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{CODE_OK, lenient};

/// Result of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackItem {
    /// Id of the run.
    pub log_id: i64,
    /// Time of the trigger according to the executor; not reliable and not used.
    pub log_date_time: i64,
    /// 200, 500, 502, or any other number the executor chooses, even one that does not fit XXL-JOB's column.
    pub handle_code: i64,
    /// Message of the handler.
    pub handle_msg: Option<String>,
}

/// Body format that a scheduling centre understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallbackShape {
    /// Array of items: 2.2.0 to 3.4.2.
    Array,
    /// Object with the array in it: after 3.4.2.
    Object,
}

impl CallbackShape {
    /// Returns the other format if the error message of the scheduling centre asks for it. The rejected request had
    /// no effect, so sending it again is safe.
    pub fn corrected_by(self, refusal: &str) -> Option<CallbackShape> {
        match self {
            CallbackShape::Array if refusal.contains(EXPECTED_OBJECT) => Some(CallbackShape::Object),
            CallbackShape::Object if refusal.contains(EXPECTED_ARRAY) => Some(CallbackShape::Array),
            _ => None,
        }
    }
}

const EXPECTED_OBJECT: &str = "Expected BEGIN_OBJECT but was BEGIN_ARRAY";
const EXPECTED_ARRAY: &str = "Expected BEGIN_ARRAY but was BEGIN_OBJECT";

/// Serializes a body. Items of an array carry the fields of all lineages.
///
/// ```
/// use tickwright_protocol::xxl::{CallbackItem, CallbackShape, write_callbacks};
///
/// let item = CallbackItem { log_id: 7, log_date_time: 1, handle_code: 200, handle_msg: None };
/// assert_eq!(
///     write_callbacks([&item], CallbackShape::Object),
///     r#"{"callbackList":[{"logId":7,"logDateTime":1,"handleCode":200}]}"#
/// );
/// ```
pub fn write_callbacks<'a>(
    items: impl IntoIterator<Item = &'a CallbackItem>,
    shape: CallbackShape,
) -> String {
    let written: Vec<Written<'_>> = items.into_iter().map(|item| Written::new(item, shape)).collect();
    let json = match shape {
        CallbackShape::Array => serde_json::to_string(&written),
        CallbackShape::Object => serde_json::to_string(&WrittenList { callback_list: written }),
    };
    json.expect("numbers and texts can be serialized")
}

/// Parses a body of any format. A malformed item is returned as an error and does not affect the others.
pub fn read_callbacks(body: &[u8]) -> serde_json::Result<Vec<Result<CallbackItem, MalformedItem>>> {
    Ok(each_callback(body)?.collect())
}

/// Same as [`read_callbacks`], but lazy: items of a large or malformed body are parsed one at a time to limit
/// memory.
pub fn each_callback(
    body: &[u8],
) -> serde_json::Result<impl ExactSizeIterator<Item = Result<CallbackItem, MalformedItem>>> {
    let is_object = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let items: Vec<&RawValue> = if is_object {
        serde_json::from_slice::<ReadList<'_>>(body)?.callback_list
    } else {
        serde_json::from_slice(body)?
    };
    Ok(items.into_iter().enumerate().map(|(index, raw)| read_item(index, raw.get())))
}

/// An item without a run or a code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("item {index} of the callback is malformed: {reason}")]
pub struct MalformedItem {
    /// Index of the item, from 0.
    pub index: usize,
    /// Id of the run, if it could be parsed.
    pub log_id: Option<i64>,
    /// Why it is malformed.
    pub reason: String,
}

fn read_item(index: usize, json: &str) -> Result<CallbackItem, MalformedItem> {
    let malformed = |reason: String| {
        let log_id = lenient::object(json.as_bytes()).ok().map(|ReadId { log_id }| log_id);
        MalformedItem { index, log_id, reason }
    };
    let read: Read = lenient::object(json.as_bytes()).map_err(|error| malformed(error.to_string()))?;
    let result = read.execute_result.unwrap_or_default();
    let Some(code) = read.handle_code.or(result.code) else {
        return Err(malformed("it has neither handleCode nor executeResult.code".to_owned()));
    };
    // 2.2-style executors put the error message into either field.
    let texts = [read.handle_msg, result.msg, result.content.filter(|_| code != i64::from(CODE_OK))];
    let msg =
        texts.into_iter().flatten().reduce(|text, next| if text.trim().is_empty() { next } else { text });
    Ok(CallbackItem {
        log_id: read.log_id,
        log_date_time: read.log_date_time.or(read.log_date_tim).unwrap_or_default(),
        handle_code: code,
        handle_msg: msg,
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenList<'a> {
    callback_list: Vec<Written<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    log_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_date_tim: Option<i64>,
    log_date_time: i64,
    handle_code: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle_msg: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execute_result: Option<WrittenResult<'a>>,
}

#[derive(Serialize)]
struct WrittenResult<'a> {
    code: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    msg: Option<&'a str>,
}

impl<'a> Written<'a> {
    fn new(item: &'a CallbackItem, shape: CallbackShape) -> Written<'a> {
        let is_array = shape == CallbackShape::Array;
        let msg = item.handle_msg.as_deref();
        Written {
            log_id: item.log_id,
            log_date_tim: is_array.then_some(item.log_date_time),
            log_date_time: item.log_date_time,
            handle_code: item.handle_code,
            handle_msg: msg,
            execute_result: is_array.then_some(WrittenResult { code: item.handle_code, msg }),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadList<'a> {
    #[serde(borrow)]
    callback_list: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadId {
    #[serde(deserialize_with = "lenient::integer")]
    log_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    #[serde(deserialize_with = "lenient::integer")]
    log_id: i64,
    #[serde(default, deserialize_with = "lenient::maybe_integer")]
    log_date_tim: Option<i64>,
    #[serde(default, deserialize_with = "lenient::maybe_integer")]
    log_date_time: Option<i64>,
    #[serde(default, deserialize_with = "lenient::maybe_integer")]
    handle_code: Option<i64>,
    #[serde(default, deserialize_with = "lenient::any_text")]
    handle_msg: Option<String>,
    #[serde(default)]
    execute_result: Option<ReadResult>,
}

#[derive(Default, Deserialize)]
struct ReadResult {
    #[serde(default, deserialize_with = "lenient::maybe_integer")]
    code: Option<i64>,
    #[serde(default, deserialize_with = "lenient::any_text")]
    msg: Option<String>,
    #[serde(default, deserialize_with = "lenient::any_text")]
    content: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_read() {
        check(r#"[{"logId":7,"logDateTim":1,"handleCode":200,"handleMsg":"fine"}]"#, 200, Some("fine"));
        check(
            r#" {"callbackList":[{"logId":7,"logDateTime":1,"handleCode":200,"handleMsg":"fine"}]}"#,
            200,
            Some("fine"),
        );
        check(
            r#"[{"logId":7,"logDateTim":1,"executeResult":{"code":500,"msg":"no","content":{}}}]"#,
            500,
            Some("no"),
        );
        // Numbers in strings, and unknown fields.
        check(r#"[{"logId":"7","logDateTim":"1","handleCode":"502","other":[1]}]"#, 502, None);
        // Both formats: the newer one wins.
        check(
            r#"[{"logId":7,"logDateTim":1,"handleCode":200,"handleMsg":null,"executeResult":{"code":500}}]"#,
            200,
            None,
        );
        // The error message is in the field used by 2.2-style executors.
        check(
            r#"[{"logId":7,"logDateTim":1,"executeResult":{"code":500,"msg":"","content":"no disk"}}]"#,
            500,
            Some("no disk"),
        );
        check(
            r#"[{"logId":7,"logDateTim":1,"executeResult":{"code":200,"msg":null,"content":"7 rows"}}]"#,
            200,
            None,
        );
        // Codes that XXL-JOB does not define, and a message that is not a string.
        check(r#"[{"logId":7,"logDateTim":1,"handleCode":409,"handleMsg":""}]"#, 409, Some(""));
        check(r#"[{"logId":7,"logDateTim":1,"handleCode":2147483648}]"#, 2_147_483_648, None);
        check(
            r#"[{"logId":7,"logDateTim":1,"handleCode":200,"handleMsg":{"rows":7}}]"#,
            200,
            Some(r#"{"rows":7}"#),
        );
    }

    fn check(body: &str, code: i64, msg: Option<&str>) {
        let items = read_callbacks(body.as_bytes()).unwrap();
        let expected = CallbackItem {
            log_id: 7,
            log_date_time: 1,
            handle_code: code,
            handle_msg: msg.map(str::to_owned),
        };
        assert_eq!(items, [Ok(expected)], "{body}");
    }

    #[test]
    fn a_malformed_item_is_told_apart() {
        let body = r#"[{"logId":1,"handleCode":200},{"logId":2},{"logId":"x","handleCode":200},[5,1,1,200],
                       {"logId":3,"handleCode":"many"},{"logId":4,"handleCode":200}]"#;
        let items = read_callbacks(body.as_bytes()).unwrap();
        let found: Vec<_> = items
            .iter()
            .map(|item| item.as_ref().map(|item| item.log_id).map_err(|bad| bad.log_id))
            .collect();
        assert_eq!(found, [Ok(1), Err(Some(2)), Err(None), Err(None), Err(Some(3)), Ok(4)]);
        assert!(read_callbacks(b"[]").unwrap().is_empty());
        for wrong in ["", "{}", "null", "7", r#"{"callbackList":7}"#, "[{]"] {
            assert!(read_callbacks(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_refusal_says_which_shape_is_wanted() {
        let gson =
            "openapi invoke error: Expected BEGIN_OBJECT but was BEGIN_ARRAY at line 1 column 2 path $";
        assert_eq!(CallbackShape::Array.corrected_by(gson), Some(CallbackShape::Object));
        assert_eq!(CallbackShape::Object.corrected_by(gson), None);
        assert_eq!(CallbackShape::Array.corrected_by("The access token is wrong."), None);
    }
}
