//! Workflows as text: YAML, and the places of its fields.

use protocol::v1::{FieldProblem, WorkflowBody, WorkflowProblem};
use serde_saphyr::Error;

use crate::places::Places;

/// Parses a definition.
pub fn read(text: &str) -> Result<WorkflowBody, WorkflowProblem> {
    let unreadable = |error: Error| {
        let place = error.location();
        let detail = error.without_snippet().to_string();
        let (line, column) = (place.map(|place| place.line()), place.map(|place| place.column()));
        WorkflowProblem { path: String::new(), detail, line, column }
    };
    serde_saphyr::from_str_with_options(text, options()).map_err(unreadable)
}

/// Writes a definition.
pub fn write(body: &WorkflowBody) -> Result<String, serde_saphyr::SerializeError> {
    serde_saphyr::to_string(body)
}

/// Bounds alias expansion; the request itself has bounded the text.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: NODES_MAX,
            max_events: 4 * NODES_MAX,
        },
    }
}

/// Maximum number of keys and values: about fifty for each of the steps that a workflow may have.
const NODES_MAX: usize = 50 * workflow::STEPS_MAX;

/// Adds the places in a text that [`read`] has read to problems of its definition.
pub fn located(text: &str, problems: Vec<FieldProblem>) -> Vec<WorkflowProblem> {
    if problems.is_empty() {
        return Vec::new();
    }
    let places = Places::read(text, options());
    let locate = |FieldProblem { field, detail }| {
        let path = field.strip_prefix("workflow.").unwrap_or(&field).to_owned();
        let place = places.as_ref().and_then(|places| places.find(&[], &path));
        let (line, column) = place.unzip();
        WorkflowProblem { path, detail, line, column }
    };
    problems.into_iter().map(locate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "inputs:
  region: { type: text }
steps:
  - name: a
    job: extract
  - name: a_b
    needs: [a]
    approval:
      ask: go on?
";

    #[test]
    fn a_text_is_read_back_as_it_was_written() {
        let body = read(TEXT).unwrap();
        let text = write(&body).unwrap();
        assert_eq!(read(&text).unwrap(), body, "{text}");
        let json = serde_json::to_string(&body).unwrap();
        assert_eq!(read(&json).unwrap(), body, "JSON is YAML, too");
    }

    #[test]
    fn a_problem_has_its_line() {
        let check = |field: &str, line: u64| {
            let problem = FieldProblem { field: format!("workflow.{field}"), detail: "wrong".into() };
            let found = located(TEXT, vec![problem]).remove(0);
            assert_eq!((found.path.as_str(), found.line), (field, Some(line)));
        };
        check("inputs.region", 2);
        check("steps.a", 4);
        check("steps[0].job", 5);
        check("steps.a_b.needs[0].if", 7);
        check("steps.a_b.approval.ask", 9);
        check("steps.a_b.timeout_ms", 6);
        check("steps.unknown", 4);
    }

    #[test]
    fn an_unreadable_text_is_a_problem_with_a_line() {
        let check = |text: &str, line: u64, detail: &str| {
            let problem = read(text).unwrap_err();
            assert_eq!(problem.line, Some(line), "{problem:?}");
            assert!(problem.detail.contains(detail), "{problem:?}");
        };
        check(&TEXT.replace("job: extract", "jobb: extract"), 5, "jobb");
        check("steps:\n  - name: a\n   job: x\n", 3, "");
        check("steps:\n  - name: [a]\n", 2, "string");
    }
}
