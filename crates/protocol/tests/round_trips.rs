//! Written messages are read back unchanged, and no body makes a reader panic.

use proptest::prelude::*;
use tickwright_protocol::xxl::{
    Answer, CallbackItem, CallbackShape, LogRequest, TriggerRequest, read_callbacks, texts, write_callbacks,
};

proptest! {
    #[test]
    fn callbacks(items in prop::collection::vec(item(), 0..60), is_array: bool) {
        let shape = if is_array { CallbackShape::Array } else { CallbackShape::Object };
        let read = read_callbacks(write_callbacks(&items, shape).as_bytes()).unwrap();
        prop_assert_eq!(read.into_iter().collect::<Result<Vec<_>, _>>().unwrap(), items);
    }

    #[test]
    fn triggers(request in trigger()) {
        let json = serde_json::to_string(&request).unwrap();
        prop_assert_eq!(TriggerRequest::read(json.as_bytes()).unwrap(), request);
    }

    #[test]
    fn answers(code: i32, msg: Option<String>, payload: Option<String>) {
        let answer = Answer { code, msg, payload: payload.map_or(serde_json::Value::Null, Into::into) };
        prop_assert_eq!(Answer::read(answer.to_json().as_bytes()).unwrap(), answer);
    }

    #[test]
    fn log_requests(log_date_time: i64, log_id: i64, from_line_num: i32) {
        let request = LogRequest { log_date_time, log_id, from_line_num };
        prop_assert_eq!(LogRequest::read(request.to_json().as_bytes()).unwrap(), request);
    }

    #[test]
    fn any_bytes(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_callbacks(&body);
        let _ = Answer::read(&body);
        let _ = LogRequest::read(&body);
        let _ = TriggerRequest::read(&body);
    }

    #[test]
    fn messages_keep_to_their_length(message in "\\PC{0,40}", repeat in 0usize..3_000) {
        let message = message.repeat(repeat);
        let shortened = texts::shortened(message.clone());
        if message.chars().count() <= texts::MESSAGE_MAX {
            prop_assert_eq!(shortened, message);
        } else {
            prop_assert_eq!(shortened.chars().count(), texts::MESSAGE_MAX + 3);
        }
    }
}

fn item() -> impl Strategy<Value = CallbackItem> {
    (any::<i64>(), any::<i64>(), any::<i64>(), any::<Option<String>>()).prop_map(
        |(log_id, log_date_time, handle_code, handle_msg)| CallbackItem {
            log_id,
            log_date_time,
            handle_code,
            handle_msg,
        },
    )
}

fn trigger() -> impl Strategy<Value = TriggerRequest> {
    (any::<[i64; 4]>(), any::<[i32; 3]>(), any::<[String; 5]>()).prop_map(|(long, int, text)| {
        let [executor_handler, executor_params, executor_block_strategy, glue_type, glue_source] = text;
        TriggerRequest {
            job_id: long[0],
            executor_handler,
            executor_params,
            executor_block_strategy,
            executor_timeout: int[0],
            log_id: long[1],
            log_date_time: long[2],
            glue_type,
            glue_source,
            glue_updatetime: long[3],
            broadcast_index: int[1],
            broadcast_total: int[2],
        }
    })
}

#[test]
fn numbers_that_are_none_are_refused() {
    for wrong in [
        r#""../../etc/passwd""#,
        "1e3",
        "1.0",
        r#""1e3""#,
        r#"" 1""#,
        r#""+1""#,
        "9223372036854775808",
        "null",
        "NaN",
        "true",
        "[1]",
    ] {
        let body = format!(r#"{{"logDateTim":1,"logId":{wrong},"fromLineNum":1}}"#);
        assert!(LogRequest::read(body.as_bytes()).is_err(), "{wrong}");
    }
    for wrong in ["2147483648", "-2147483649", "1.5"] {
        let body = format!(r#"{{"logDateTim":1,"logId":1,"fromLineNum":{wrong}}}"#);
        assert!(LogRequest::read(body.as_bytes()).is_err(), "{wrong}");
    }
}
