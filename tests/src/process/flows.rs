//! Workflows whose steps run on journal executors.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use cron::{Schedule, Timestamp};
use engine::policy::{Backoff, Misfire, Retry, Route};
use engine::{JobId, JobSpec, Store as _};
use workflow::Graph;
use workflow::definition::{Action, Param, Step, Workflow};

use super::cluster::Cluster;

/// A workflow in the database of a cluster.
pub struct Flow {
    /// Job of the workflow.
    pub workflow: JobId,
    /// Jobs that its steps run in turn.
    pub jobs: Vec<JobId>,
}

impl Flow {
    /// Adds a workflow to a cluster without nodes. `steps` has the positions of the steps that each one needs; they run
    /// `jobs` jobs in turn. The workflow fires each `period` from `first` to `last`.
    pub async fn add(
        cluster: &Cluster,
        steps: &[Vec<usize>],
        jobs: usize,
        (first, last): (Timestamp, Timestamp),
        period: Duration,
    ) -> Result<Flow> {
        let store = cluster.store().await?;
        let mut ids = Vec::with_capacity(jobs);
        for number in 0..jobs {
            let mut spec = JobSpec::new(cluster.app, format!("step {number}"), Schedule::Never, "journal");
            spec.route = Route::RoundRobin.into();
            // The first steps may be due before all nodes know the executors.
            spec.retry = Retry { count: 100, backoff: Backoff::Fixed { delay: Duration::from_millis(500) } };
            ids.push(store.create_job(&spec).await?);
        }
        let name = |position: &usize| format!("s{position}");
        let step = |(position, needs): (usize, &Vec<usize>)| {
            let needs: Vec<String> = needs.iter().map(name).collect();
            let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
            let action = Action::Job { job: ids[position % jobs].0, param: Param::Own };
            Step::new(name(&position), &needs, action)
        };
        let steps = steps.iter().enumerate().map(step).collect();
        let graph = Graph::new(Workflow { steps, ..Workflow::default() });
        let graph = graph.map_err(|problems| anyhow!("{problems:?}"))?;
        let id = store.add_workflow(graph.definition(), "a test").await?;
        let mut spec = JobSpec::new(cluster.app, "workflow", Schedule::fixed_rate(first, period)?, "");
        spec.workflow = Some(id);
        spec.valid_until = Some(last);
        spec.misfire = Misfire::FireAll { window: Duration::from_secs(3_600), max: 1_000 };
        let workflow = store.add_started_jobs(&spec, 1, first).await?.pop().context("one job was added")?;
        Ok(Flow { workflow, jobs: ids })
    }
}
