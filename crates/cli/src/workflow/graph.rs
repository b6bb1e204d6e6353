//! `tickwright workflow graph`: the steps of a workflow as text, or as a diagram for documents.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use protocol::v1::{JobView, Need, Phase, StepBody, WorkflowBody};

use crate::api::{Call, Client, path};
use crate::terminal;
use crate::yaml::Jobs;

/// Form of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// A line per step.
    Text,
    /// A diagram in the language of Mermaid, which GitHub and GitLab draw.
    Mermaid,
}

/// Reads a workflow from a scheduling centre.
pub async fn of_centre(client: &Client, workflow: &str) -> Result<WorkflowBody> {
    let view = client.fetch(Call::get(path("/v1/jobs/", workflow, ""))).await;
    let view: JobView = view.with_context(|| format!("job `{workflow}`"))?;
    view.body.workflow.with_context(|| format!("job `{workflow}` is no workflow"))
}

/// Reads a workflow from a file.
pub fn of_file(file: &Path, workflow: &str) -> Result<WorkflowBody> {
    let text = std::fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    let mut jobs = Jobs::read(&text).with_context(|| file.display().to_string())?;
    let found = jobs.jobs.remove(workflow).and_then(|job| job.workflow);
    found.with_context(|| format!("{} has no workflow `{workflow}`", file.display()))
}

/// Prints a workflow.
pub fn print(workflow: &WorkflowBody, form: Form) -> Result<()> {
    terminal::write(&match form {
        Form::Text => text(workflow),
        Form::Mermaid => mermaid(workflow),
    })
}

fn text(workflow: &WorkflowBody) -> String {
    let width = workflow.steps.iter().map(|step| step.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for step in &workflow.steps {
        let needs: Vec<String> = step.needs.iter().map(|need| connection(need).0).collect();
        let phase = match step.phase {
            Phase::Main => "",
            Phase::OnFailure => "  (on failure)",
            Phase::Finally => "  (finally)",
        };
        let after = if needs.is_empty() { String::new() } else { format!("  after {}", needs.join(", ")) };
        let _ = writeln!(text, "{:width$}  {}{after}{phase}", step.name, action(step));
    }
    text
}

/// The need as text, with the name of the step and the label of the connection.
fn connection(need: &Need) -> (String, &str, Option<String>) {
    match need {
        Need::Step(step) => (step.clone(), step, None),
        Need::Branch(branch) => match &branch.condition {
            Some(condition) => {
                (format!("{} if {condition}", branch.step), &branch.step, Some(condition.clone()))
            }
            None if branch.otherwise => {
                (format!("{} else", branch.step), &branch.step, Some("else".to_owned()))
            }
            None => (branch.step.clone(), &branch.step, None),
        },
    }
}

/// What a step does, in a few words.
fn action(step: &StepBody) -> String {
    let named = |kind: &str, name: &Option<String>| name.as_ref().map(|name| format!("{kind} {name}"));
    let found = named("handler", &step.handler)
        .or_else(|| named("job", &step.job))
        .or_else(|| named("workflow", &step.workflow))
        .or_else(|| {
            step.depends.as_ref().map(|depends| format!("waits for {} ({})", depends.on, depends.date))
        })
        .or_else(|| step.http.as_ref().map(|http| format!("http {}", http.url)))
        .or_else(|| step.command.as_ref().map(|words| format!("command {}", words.join(" "))))
        .or_else(|| step.script.as_ref().map(|script| format!("script in {}", script.language)))
        .or_else(|| step.approval.as_ref().map(|_| "approval".to_owned()));
    found.unwrap_or_else(|| "wait".to_owned())
}

fn mermaid(workflow: &WorkflowBody) -> String {
    let mut text = String::from("flowchart LR\n");
    for (phase, title) in
        [(Phase::Main, None), (Phase::OnFailure, Some("on failure")), (Phase::Finally, Some("finally"))]
    {
        let steps: Vec<&StepBody> = workflow.steps.iter().filter(|step| step.phase == phase).collect();
        if steps.is_empty() {
            continue;
        }
        let indent = if title.is_some() { "    " } else { "  " };
        if let Some(title) = title {
            let _ = writeln!(text, "  subgraph {}[{title}]", phase_word(phase));
        }
        for step in &steps {
            let (open, close) = if step.approval.is_some() { ("{{", "}}") } else { ("[", "]") };
            let label = quoted(&format!("{}<br>{}", step.name, action(step)));
            let _ = writeln!(text, "{indent}{PREFIX}{}{open}{label}{close}", step.name);
        }
        for step in &steps {
            for need in &step.needs {
                let (_, from, label) = connection(need);
                let label = label.map(|label| format!("|{}|", quoted(&label))).unwrap_or_default();
                let _ = writeln!(text, "{indent}{PREFIX}{from} -->{label} {PREFIX}{}", step.name);
            }
        }
        if title.is_some() {
            text.push_str("  end\n");
        }
    }
    text
}

/// Makes names of steps that are words of the language, for example `end`, names of nodes.
const PREFIX: &str = "s_";

fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Main => "main_phase",
        Phase::OnFailure => "failure_phase",
        Phase::Finally => "last_phase",
    }
}

/// A label without characters that end it.
fn quoted(label: &str) -> String {
    let label: String = label.chars().take(LABEL_MAX).collect();
    format!("\"{}\"", label.replace('"', "#quot;").replace('\n', " "))
}

/// Longer texts make a diagram unreadable.
const LABEL_MAX: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
workflows:
  sales/daily:
    app: shop
    name: Daily sales
    steps:
      orders: { handler: extract }
      full: { needs: [{ step: orders, if: 'steps.orders.output.mode == \"full\"' }], handler: load }
      part: { needs: [{ step: orders, else: true }], depends: { on: shop/stock, date: -1d } }
      sign: { needs: [full, part], approval: { ask: go on? } }
    finally:
      tidy: { job: shop/tidy }
";

    fn workflow() -> WorkflowBody {
        Jobs::read(FILE).unwrap().jobs.remove("sales/daily").unwrap().workflow.unwrap()
    }

    #[test]
    fn a_graph_is_a_line_per_step() {
        let expected = "\
orders  handler extract
full    handler load  after orders if steps.orders.output.mode == \"full\"
part    waits for shop/stock (-1d)  after orders else
sign    approval  after full, part
tidy    job shop/tidy  (finally)
";
        assert_eq!(text(&workflow()), expected);
    }

    #[test]
    fn a_graph_is_a_diagram() {
        let expected = "\
flowchart LR
  s_orders[\"orders<br>handler extract\"]
  s_full[\"full<br>handler load\"]
  s_part[\"part<br>waits for shop/stock (-1d)\"]
  s_sign{{\"sign<br>approval\"}}
  s_orders -->|\"steps.orders.output.mode == #quot;full#quot;\"| s_full
  s_orders -->|\"else\"| s_part
  s_full --> s_sign
  s_part --> s_sign
  subgraph last_phase[finally]
    s_tidy[\"tidy<br>job shop/tidy\"]
  end
";
        assert_eq!(mermaid(&workflow()), expected);
    }
}
