//! Error messages of the compat APIs: one line of text, with XXL-JOB's name of the field.

use crate::request_error::RequestError;

/// Message for a client of XXL-JOB's.
pub fn text(error: &RequestError) -> String {
    let field = error.fields.first();
    let field = field.and_then(|wrong| XXL_FIELDS.iter().find(|(own, _)| *own == wrong.field));
    match field {
        Some((_, xxl)) => format!("{xxl}: {}", error.message),
        None => error.message.clone(),
    }
}

/// Field names in `/v1`, and XXL-JOB's names for them.
const XXL_FIELDS: [(&str, &str); 11] = [
    ("address", "addressList"),
    ("addressing.addresses", "addressList"),
    ("app", "jobGroup"),
    ("children", "childJobId"),
    ("name", "username"),
    ("param", "executorParam"),
    ("remark", "glueRemark"),
    ("schedule", "scheduleConf"),
    ("schedule.kind", "scheduleType"),
    ("script", "glueType"),
    ("source", "glueSource"),
];
