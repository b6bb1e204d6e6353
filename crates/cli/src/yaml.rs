//! File format of `export` and `import`: jobs and workflows by key, in YAML.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, anyhow, bail};
use protocol::v1::{JobBody, StepBody};
use serde::{Deserialize, Serialize};

use crate::workflow_file::WorkflowFile;

/// Jobs of a file.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Jobs {
    /// Jobs by key, each in the format of `PUT /v1/jobs/{key}`.
    pub jobs: BTreeMap<String, JobBody>,
}

/// Content of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    #[serde(default)]
    jobs: BTreeMap<String, JobBody>,
    /// Workflows by key, in a form that is easier to write than a job's.
    #[serde(default)]
    workflows: BTreeMap<String, WorkflowFile>,
}

impl Jobs {
    /// Parses the text of a file.
    pub fn read(text: &str) -> Result<Jobs> {
        let unreadable = |error: serde_saphyr::Error| {
            anyhow!("the file is not a list of jobs and workflows by key: {}", error.without_snippet())
        };
        let content = serde_saphyr::from_str_with_options(text, options()).map_err(unreadable)?;
        let Content { mut jobs, workflows } = content;
        for (key, workflow) in workflows {
            if jobs.insert(key.clone(), workflow.into()).is_some() {
                bail!("`{key}` is both a job and a workflow of the file");
            }
        }
        Ok(Jobs { jobs })
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

/// Bounds alias expansion and nesting; the number of plain jobs may be as large as a scheduling centre's.
pub fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: NODES_MAX,
            max_events: 4 * NODES_MAX,
            max_total_scalar_bytes: TEXT_MAX,
        },
    }
}

/// Jobs that the steps of a workflow run.
pub fn step_jobs(body: &JobBody) -> impl Iterator<Item = &String> {
    let steps = body.workflow.iter().flat_map(|workflow| &workflow.steps);
    steps.flat_map(|step| step.job.iter().chain(&step.workflow).chain(awaited(step)))
}

/// Job that a step depends on.
fn awaited(step: &StepBody) -> Option<&String> {
    step.depends.as_ref().map(|depends| &depends.on)
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
    fn a_workflow_may_be_written_with_steps_by_name() {
        let text = "
workflows:
  sales/daily:
    app: shop
    name: Daily sales
    timeout: 2h
    steps:
      orders: { handler: extract, with: { table: orders }, retry: { count: 3 }, timeout: 90s }
      sign: { needs: [orders], approval: { ask: 'go on?', timeout: 1h } }
      pause: { needs: [sign], wait: 5m }
    finally:
      tidy: { job: sales/tidy }
jobs:
  sales/tidy: { app: shop, name: Tidy, schedule: { kind: none }, handler: tidy }
";
        let jobs = Jobs::read(text).unwrap();
        assert_eq!(jobs.in_order(), ["sales/tidy", "sales/daily"]);
        let workflow = jobs.jobs["sales/daily"].workflow.clone().unwrap();
        let steps: Vec<_> = workflow.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(steps, ["orders", "sign", "pause", "tidy"]);
        assert_eq!((workflow.timeout_ms, workflow.steps[0].timeout_ms), (Some(7_200_000), Some(90_000)));
        assert_eq!(workflow.steps[2].wait_ms, Some(300_000));
        assert_eq!(workflow.steps[3].phase, protocol::v1::Phase::Finally);
        let refused = |from: &str, to: &str, why: &str| {
            let error = format!("{:#}", Jobs::read(&text.replace(from, to)).unwrap_err());
            assert!(error.contains(why), "{error}");
        };
        refused("90s", "soon", "line 8");
        refused("needs: [sign], wait", "need: [sign], wait", "need");
        refused("sales/tidy: { app", "sales/daily: { app", "both a job and a workflow");
        refused("      sign:", "      orders:", "orders");
    }

    #[test]
    fn the_workflows_of_the_docs_have_no_problems() {
        let pages =
            [include_str!("../../../docs/guides/workflows.md"), include_str!("../../../docs/recipes.md")];
        let examples = pages.iter().flat_map(|page| page.split("```yaml\n").skip(1));
        let examples: Vec<&str> = examples.filter_map(|rest| rest.split("```").next()).collect();
        let examples: Vec<&str> = examples.into_iter().filter(|text| text.contains("workflows:")).collect();
        assert_eq!(examples.len(), 6);
        for example in examples {
            for (key, job) in Jobs::read(example).unwrap().jobs {
                let problems = job.workflow.map(|workflow| server::workflow_problems(&workflow));
                assert_eq!(problems.unwrap_or_default(), [], "{key}");
            }
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
