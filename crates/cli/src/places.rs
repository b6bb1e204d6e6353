//! Places of fields of jobs and workflows in a file.

use server::Places;

/// Line and column of a field like `workflow.steps.load.needs[0]`; of the innermost value around it if the field is not in
/// the file.
pub fn place(places: &Places, key: &str, field: &str) -> Option<(u64, u64)> {
    let in_job = places.find(&["jobs", key], field);
    in_job.or_else(|| in_workflow(places, key, field.strip_prefix("workflow.").unwrap_or(field)))
}

/// A workflow has its steps in three fields.
fn in_workflow(places: &Places, key: &str, field: &str) -> Option<(u64, u64)> {
    let step = field.strip_prefix("steps.").map(|rest| rest.split_once('.').unwrap_or((rest, "")));
    let in_steps = step.and_then(|(name, rest)| {
        let phases = ["steps", "on_failure", "finally"].into_iter();
        phases.filter_map(|phase| places.find(&["workflows", key, phase, name], rest)).next()
    });
    in_steps.or_else(|| places.find(&["workflows", key], field))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
jobs:
  a:
    app: x
    workflow:
      steps:
        - { name: one, job: b }
        - name: two
          needs: [one, three]
workflows:
  w:
    app: x
    steps:
      load: { handler: load, timeout: 9s }
    finally:
      tidy:
        job: gone
";

    #[test]
    fn a_field_is_found_or_the_value_around_it() {
        let places = Places::read(FILE, crate::yaml::options()).unwrap();
        let check =
            |key: &str, field: &str, expected| assert_eq!(place(&places, key, field), expected, "{field}");
        check("a", "workflow.steps.one.job", Some((6, 29)));
        check("a", "workflow.steps.two.needs[1]", Some((8, 24)));
        check("a", "workflow.steps.two.gone", Some((7, 11)));
        check("w", "workflow.steps.load.timeout_ms", Some((13, 39)));
        check("w", "workflow.steps.tidy.job", Some((16, 14)));
        check("w", "workflow.inputs", Some((11, 5)));
        check("none", "workflow", None);
    }
}
