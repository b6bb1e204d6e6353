//! JSON output of a run, for the steps of a workflow that follow it.

use protocol::xxl::texts::MESSAGE_MAX;
use serde::Serialize;

use crate::job::IntoOutcome;

/// JSON that a handler returns. The run succeeds with it as its message, so later steps of a workflow can use its fields,
/// for example `${{ steps.count.output.rows }}`.
///
/// ```
/// use serde_json::json;
/// use tickwright_executor::{Context, Output, testing};
///
/// async fn count(_: Context) -> Output {
///     Output::json(&json!({ "rows": 5 }))
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let ended = testing::run(count, "").await;
/// assert_eq!(ended.message(), Some(r#"{"rows":5}"#));
/// # });
/// ```
///
/// A message has at most 50 000 characters; a longer output fails the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output(Result<String, String>);

impl Output {
    /// Converts a value to JSON.
    pub fn json(value: &impl Serialize) -> Output {
        let text = serde_json::to_string(value);
        Output(
            text.map_err(|error| format!("the output cannot be written as JSON: {error}")).and_then(checked),
        )
    }

    /// Output of a program: the text that it wrote to a file.
    pub(crate) fn text(text: String) -> Output {
        Output(checked(text))
    }

    pub(crate) fn into_text(self) -> Result<String, String> {
        self.0
    }
}

impl IntoOutcome for Output {
    fn into_result(self) -> Result<Option<String>, String> {
        self.0.map(Some)
    }
}

/// Rejects a text that a message cannot hold: cut JSON has no value.
fn checked(text: String) -> Result<String, String> {
    match text.chars().count() {
        0..=MESSAGE_MAX => Ok(text),
        count => Err(format!(
            "the output has {count} characters, at most {MESSAGE_MAX} are allowed; store it elsewhere and return a \
             reference"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_is_too_long_fails_the_run() {
        assert_eq!(Output::json(&[1, 2]).into_result(), Ok(Some("[1,2]".into())));
        assert!(Output::text("x".repeat(MESSAGE_MAX)).into_result().is_ok());
        let error = Output::text("x".repeat(MESSAGE_MAX + 1)).into_result().unwrap_err();
        assert!(error.contains("50001 characters, at most 50000"), "{error}");
    }
}
