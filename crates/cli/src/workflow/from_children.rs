//! `tickwright workflow from-children`: writes a job and its child jobs as one workflow.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::{Context, Result, bail};
use protocol::v1::{JobBody, JobView, Named, Need, OnError, Schedule, StepBody, WorkflowBody};

use crate::api::{Call, Client, path};
use crate::terminal;
use crate::yaml::Jobs;

/// Prints the workflow as a file for `tickwright import`, and what to do next as messages.
pub async fn from_children(client: &Client, root: &str, key: &str) -> Result<()> {
    let family = read(client, root).await?;
    let (body, notes) = family.workflow()?;
    let jobs = Jobs { jobs: BTreeMap::from([(key.to_owned(), body)]) };
    terminal::write(&jobs.write()?)?;
    for note in notes {
        eprintln!("note: {note}");
    }
    eprintln!("next: save it as FILE, then run: tickwright import FILE");
    eprintln!("      tickwright job stop {root}, then: tickwright job start {key}");
    Ok(())
}

/// Reads a job and all jobs below it.
async fn read(client: &Client, root: &str) -> Result<Family> {
    let mut family = Family { root: root.to_owned(), jobs: BTreeMap::new(), order: Vec::new() };
    let mut open = VecDeque::from([root.to_owned()]);
    while let Some(name) = open.pop_front() {
        if family.jobs.contains_key(&name) {
            continue;
        }
        if family.jobs.len() == JOBS_MAX {
            bail!("more than {JOBS_MAX} jobs follow `{root}`");
        }
        let view = client.fetch(Call::get(path("/v1/jobs/", &name, ""))).await;
        let view: JobView = view.with_context(|| format!("job `{name}`"))?;
        open.extend(view.body.children.iter().map(|child| name_of(child)));
        family.jobs.insert(name.clone(), view.body);
        family.order.push(name);
    }
    Ok(family)
}

/// Maximum number of jobs; each is read by a request of its own.
const JOBS_MAX: usize = 1_000;

/// A child as commands name it: children without a key are listed by id.
fn name_of(child: &str) -> String {
    let is_id = child.bytes().all(|byte| byte.is_ascii_digit());
    if is_id { format!("id:{child}") } else { child.to_owned() }
}

/// A job with all jobs below it.
struct Family {
    root: String,
    /// Jobs by the name that commands use.
    jobs: BTreeMap<String, JobBody>,
    /// Their names, each after the one that it was found through.
    order: Vec<String>,
}

impl Family {
    /// The family as one workflow, and what differs from before.
    fn workflow(&self) -> Result<(JobBody, Vec<String>)> {
        if let Some(circle) = self.circle() {
            bail!("these jobs start each other in a circle, which a workflow cannot: {}", circle.join(" → "));
        }
        let mut notes = Vec::new();
        let steps = self.step_names();
        let root = &self.jobs[&self.root];
        let mut bodies = Vec::with_capacity(self.order.len());
        for name in &self.order {
            let job = &self.jobs[name];
            if let Some(workflow) = &job.workflow {
                bail!(
                    "job `{name}` is a workflow of {} steps already; name it in a step",
                    workflow.steps.len()
                );
            }
            let parents = self.order.iter().filter(|parent| self.children(parent).contains(name));
            let parents: Vec<Need> = parents.map(|parent| Need::Step(steps[parent].clone())).collect();
            let step = &steps[name];
            if parents.len() > 1 {
                notes.push(format!(
                    "step `{step}` runs once, after all {} steps that it needs; as a child job it ran after each",
                    parents.len()
                ));
            }
            bodies.push(StepBody { name: step.clone(), needs: parents, ..self.step(name, &mut notes)? });
        }
        let workflow = WorkflowBody { steps: bodies, on_error: OnError::Continue, ..WorkflowBody::default() };
        let body = JobBody {
            workflow: Some(workflow),
            enabled: Some(false),
            handler: String::new(),
            param: String::new(),
            script: None,
            timeout_ms: None,
            children: Vec::new(),
            route: Named::default(),
            block: Named::default(),
            // A retry would be one of the whole run; those of the jobs are at their steps.
            retry: Default::default(),
            delivery: Default::default(),
            ..root.clone()
        };
        Ok((body, notes))
    }

    /// A step that does what a job does.
    fn step(&self, name: &str, notes: &mut Vec<String>) -> Result<StepBody> {
        let job = &self.jobs[name];
        if name != self.root && job.enabled == Some(true) && !matches!(job.schedule, Schedule::None) {
            notes.push(format!("job `{name}` also has a schedule of its own, which stays as it is"));
        }
        let Named::Known(route) = job.route.clone() else {
            bail!("job `{name}` has a routing strategy that Tickwright does not know; replace it first");
        };
        let app = &self.jobs[&self.root].app;
        Ok(StepBody {
            handler: (!job.handler.is_empty()).then(|| job.handler.clone()),
            script: job.script.clone(),
            app: (job.app != *app).then(|| job.app.clone()),
            param: (!job.param.is_empty()).then(|| job.param.clone()),
            retry: Some(job.retry),
            delivery: Some(job.delivery),
            route: Some(route),
            timeout_ms: job.timeout_ms,
            ..StepBody::default()
        })
    }

    fn children(&self, name: &str) -> Vec<String> {
        self.jobs[name].children.iter().map(|child| name_of(child)).collect()
    }

    /// Names of the steps, by job: the last part of the job's key, as far as a step may be named so.
    fn step_names(&self) -> BTreeMap<String, String> {
        let mut taken = BTreeSet::new();
        let mut names = BTreeMap::new();
        for name in &self.order {
            let last = name.rsplit(['/', ':']).next().unwrap_or_default().to_lowercase();
            let is_allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
            let plain: String = last
                .chars()
                .map(|letter| if is_allowed(letter) { letter } else { '_' })
                .take(STEM_MAX)
                .collect();
            let plain = if name.starts_with("id:") { format!("job_{plain}") } else { plain };
            let numbered = (2..).map(|number| format!("{plain}_{number}"));
            let step = std::iter::once(plain.clone()).chain(numbered).find(|step| !taken.contains(step));
            let step = step.expect("there are more numbers than jobs");
            taken.insert(step.clone());
            names.insert(name.clone(), step);
        }
        names
    }

    /// Jobs that start each other in a circle, if there are any.
    fn circle(&self) -> Option<Vec<String>> {
        let mut done = BTreeSet::new();
        let mut path: Vec<(String, Vec<String>)> = vec![(self.root.clone(), self.children(&self.root))];
        while let Some((_, left)) = path.last_mut() {
            let Some(child) = left.pop() else {
                done.extend(path.pop().map(|(name, _)| name));
                continue;
            };
            if let Some(from) = path.iter().position(|(name, _)| *name == child) {
                return Some(path[from..].iter().map(|(name, _)| name.clone()).chain([child]).collect());
            }
            if !done.contains(&child) {
                let children = self.children(&child);
                path.push((child, children));
            }
        }
        None
    }
}

/// Maximum length of a step's name before its number; names have at most 64 characters.
const STEM_MAX: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    fn family(jobs: &[(&str, &[&str])]) -> Family {
        let body = |children: &[&str]| JobBody {
            handler: "work".into(),
            children: children.iter().map(|child| (*child).to_owned()).collect(),
            ..JobBody::new("shop", "A job", Schedule::None)
        };
        Family {
            root: jobs[0].0.to_owned(),
            jobs: jobs.iter().map(|(name, children)| ((*name).to_owned(), body(children))).collect(),
            order: jobs.iter().map(|(name, _)| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn children_become_steps_that_need_their_parents() {
        let family = family(&[
            ("shop/load", &["shop/Check", "7"]),
            ("shop/Check", &["other/load"]),
            ("id:7", &["other/load"]),
            ("other/load", &[]),
        ]);
        let (body, notes) = family.workflow().unwrap();
        let workflow = body.workflow.clone().unwrap();
        let need = |need: &Need| match need {
            Need::Step(name) => name.clone(),
            Need::Branch(branch) => branch.step.clone(),
        };
        let steps: Vec<(String, Vec<String>)> = workflow
            .steps
            .iter()
            .map(|step| (step.name.clone(), step.needs.iter().map(need).collect()))
            .collect();
        let step = |name: &str, needs: &[&str]| {
            (name.to_owned(), needs.iter().map(|need| (*need).to_owned()).collect::<Vec<_>>())
        };
        let expected = [
            step("load", &[]),
            step("check", &["load"]),
            step("job_7", &["load"]),
            step("load_2", &["check", "job_7"]),
        ];
        assert_eq!(steps, expected);
        assert_eq!(server::workflow_problems(&workflow), []);
        assert_eq!((body.enabled, body.children.len()), (Some(false), 0));
        assert_eq!(notes.len(), 1);
        let written = Jobs { jobs: BTreeMap::from([("shop/all".to_owned(), body)]) };
        assert_eq!(Jobs::read(&written.write().unwrap()).unwrap(), written);
    }

    #[test]
    fn a_circle_is_named() {
        let family = family(&[("a", &["b"]), ("b", &["c", "d"]), ("c", &["b"]), ("d", &[])]);
        let error = family.workflow().unwrap_err().to_string();
        assert!(error.contains("b → c → b"), "{error}");
    }
}
