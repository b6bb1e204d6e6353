//! File format of `export` and `import`: jobs by key, in YAML.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, anyhow};
use protocol::v1::JobBody;
use serde::{Deserialize, Serialize};

/// Content of a file.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// Jobs by key, each in the format of `PUT /v1/jobs/{key}`.
    pub jobs: BTreeMap<String, JobBody>,
}

impl Jobs {
    /// Parses the text of a file.
    pub fn read(text: &str) -> Result<Jobs> {
        let unreadable = |error: serde_saphyr::Error| {
            anyhow!("the file is not a list of jobs by key: {}", error.without_snippet())
        };
        // Bounds alias expansion and nesting; the number of plain jobs may be as large as a scheduling centre's.
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_nodes: NODES_MAX,
                max_events: 4 * NODES_MAX,
                max_total_scalar_bytes: TEXT_MAX,
            },
        };
        serde_saphyr::from_str_with_options(text, options).map_err(unreadable)
    }

    /// Serializes the jobs.
    pub fn write(&self) -> Result<String> {
        serde_saphyr::to_string(self).context("failed to write the jobs as YAML")
    }

    /// Keys in an order in which each job comes after its child jobs and the jobs of its steps.
    pub fn in_order(&self) -> Vec<&str> {
        let mut order = Vec::with_capacity(self.jobs.len());
        let mut seen = BTreeSet::new();
        for key in self.jobs.keys() {
            self.visit(key, &mut seen, &mut order);
        }
        order
    }

    fn visit<'a>(&'a self, key: &'a str, seen: &mut BTreeSet<&'a str>, order: &mut Vec<&'a str>) {
        // Every key is marked before its children, so cycles of children terminate, too.
        let mut open = vec![(key, false)];
        while let Some((key, is_done)) = open.pop() {
            if is_done {
                order.push(key);
            } else if let Some(body) = self.jobs.get(key)
                && seen.insert(key)
            {
                open.push((key, true));
                open.extend(body.children.iter().chain(step_jobs(body)).map(|named| (named.as_str(), false)));
            }
        }
    }
}

/// Jobs that the steps of a workflow run.
pub fn step_jobs(body: &JobBody) -> impl Iterator<Item = &String> {
    let steps = body.workflow.iter().flat_map(|workflow| &workflow.steps);
    steps.flat_map(|step| step.job.iter().chain(&step.workflow))
}

/// Maximum number of keys and values in a file. A job has about fifty, so this is enough for a hundred thousand
/// jobs.
const NODES_MAX: usize = 10_000_000;

/// Maximum number of bytes of text in a file, scripts included.
const TEXT_MAX: usize = 1024 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
jobs:
  orders/sync:
    app: orders
    name: Sync orders
    schedule: { kind: cron, expression: 0 0/5 * * * ?, zone: Asia/Shanghai }
    handler: sync
    param: 42
    children: [orders/report]
  orders/report:
    app: orders
    name: Report
    schedule: { kind: fixed_rate, every_ms: 60000 }
    retry: { count: 3, backoff: { kind: exponential, first_ms: 1000, max_ms: 60000 } }
    script:
      language: shell
      source: |
        echo one
        echo '  two: #3'
";

    #[test]
    fn a_file_is_read_back_as_it_was_written() {
        let jobs = Jobs::read(FILE).unwrap();
        assert_eq!(jobs.jobs["orders/sync"].param, "42");
        let script = jobs.jobs["orders/report"].script.clone().unwrap();
        assert_eq!(script.source, "echo one\necho '  two: #3'\n");
        let text = jobs.write().unwrap();
        assert_eq!(Jobs::read(&text).unwrap(), jobs, "{text}");
    }

    #[test]
    fn texts_of_every_kind_come_back() {
        for text in [
            "",
            " ",
            "no",
            "~",
            "1",
            "01",
            "0x1",
            "1e3",
            "a: b",
            "# x",
            "\ttab\n",
            "a\n\n b\n\n",
            "ü\u{1}",
            "- x",
            "'\"",
            "\n",
        ] {
            let mut jobs = Jobs::read(FILE).unwrap();
            let job = jobs.jobs.get_mut("orders/report").unwrap();
            job.param = text.into();
            job.script.as_mut().unwrap().source = text.into();
            let written = jobs.write().unwrap();
            assert_eq!(Jobs::read(&written).unwrap(), jobs, "{text:?} in\n{written}");
        }
    }

    #[test]
    fn children_come_before_those_that_name_them() {
        let jobs = Jobs::read(FILE).unwrap();
        assert_eq!(jobs.in_order(), ["orders/report", "orders/sync"]);
        let circle = FILE.replace("Report\n", "Report\n    children: [orders/sync]\n");
        assert_eq!(Jobs::read(&circle).unwrap().in_order().len(), 2);
    }

    #[test]
    fn a_file_may_have_as_many_jobs_as_a_centre() {
        let few = Jobs::read(FILE).unwrap();
        let many = (0..10_000).map(|n| (format!("orders/{n}"), few.jobs["orders/sync"].clone()));
        let many = Jobs { jobs: many.collect() };
        assert_eq!(Jobs::read(&many.write().unwrap()).unwrap(), many);
    }

    #[test]
    fn what_is_misspelt_is_refused_and_named() {
        let check = |from: &str, to: &str, expected: &str| {
            let error = format!("{:#}", Jobs::read(&FILE.replace(from, to)).unwrap_err());
            assert!(error.contains(expected) && error.contains("line "), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        };
        check("handler:", "hander:", "hander");
        check("kind: cron", "kind: corn", "corn");
        check("orders/report:\n    app", "orders/sync:\n    app", "orders/sync");
    }
}
