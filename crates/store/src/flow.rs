//! Workflows that a program defines in its own code, for the embedded mode.

use std::collections::BTreeMap;
use std::time::Duration;

use cron::Schedule;
use engine::policy::{Misfire, Overlap, Retry};
use engine::{AppId, Engine, JobId, JobSpec, StoreError};
use serde_json::Value;
use workflow::Graph;
use workflow::definition::{
    Action, Branch, Input, InputType, Join, Need, OnError, Param, Phase, Step, Workflow,
};

use crate::Database;
use crate::workflows::hex_digest;

/// A workflow whose steps call handlers of the process: the definition of a job, made by a program.
///
/// ```
/// use std::sync::Arc;
///
/// use engine::embedded::{Context, Handlers};
/// use serde_json::json;
/// use tickwright_store::{Flow, FlowStep, Options};
/// use timer::SystemClock;
///
/// async fn extract(context: Context) -> Result<String, String> {
///     // The output of the step.
///     Ok(json!({ "rows": 3, "table": context.param }).to_string())
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = tickwright_store::open("sqlite::memory:", Options::default()).await?;
/// let centre = Handlers::new()
///     .with("extract", extract)
///     .with("load", |context| async move { Ok(format!("loaded {}", context.param)) })
///     .into_centre("example", Arc::new(SystemClock::new()), store.clone());
/// let job = Flow::new("sales/daily")
///     .step(FlowStep::call("orders", "extract").param("orders"))
///     .step(
///         FlowStep::call("load", "load")
///             .needs_if("orders", "steps.orders.output.rows > 0")
///             .with(json!({ "rows": "${{ steps.orders.output.rows }}" })),
///     )
///     .save(&store, &centre.engine())
///     .await?;
/// let run = centre.engine().trigger(job, 1, None).await?;
/// # let engine = centre.engine();
/// # let ended = async {
/// #     loop {
/// #         if let Some(end) = store.workflow_run(run).await.unwrap().and_then(|found| found.run.end) {
/// #             return end;
/// #         }
/// #         tokio::time::sleep(std::time::Duration::from_millis(5)).await;
/// #     }
/// # };
/// # let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
/// # let running = centre.run(async { drop(stopped.await) });
/// # let (end, ()) = tokio::join!(async { let end = ended.await; drop(stop); end }, running);
/// # assert_eq!(end.message, "");
/// # drop(engine);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Flow {
    key: String,
    app: String,
    name: String,
    schedule: Schedule,
    misfire: Misfire,
    overlap: Overlap,
    retry: Retry,
    workflow: Workflow,
    /// Handlers of the steps, by the names of the steps.
    calls: BTreeMap<String, Call>,
}

/// What a step calls.
#[derive(Clone, Debug, PartialEq)]
struct Call {
    handler: String,
    retry: Retry,
}

impl Flow {
    /// A workflow with this key, for example `sales/daily`, that runs only when it is triggered.
    pub fn new(key: impl Into<String>) -> Flow {
        let key = key.into();
        Flow {
            name: key.clone(),
            key,
            app: "embedded".to_owned(),
            schedule: Schedule::Never,
            misfire: Misfire::default(),
            overlap: Overlap::default(),
            retry: Retry::default(),
            workflow: Workflow::default(),
            calls: BTreeMap::new(),
        }
    }

    /// Sets the name of the app that the job belongs to. Default: `embedded`.
    #[must_use]
    pub fn app(self, app: impl Into<String>) -> Flow {
        Flow { app: app.into(), ..self }
    }

    /// Sets the display name. Default: the key.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Flow {
        Flow { name: name.into(), ..self }
    }

    /// Sets the schedule. Default: none.
    #[must_use]
    pub fn schedule(self, schedule: Schedule) -> Flow {
        Flow { schedule, ..self }
    }

    /// Sets the misfire policy.
    #[must_use]
    pub fn misfire(self, misfire: Misfire) -> Flow {
        Flow { misfire, ..self }
    }

    /// Sets the overlap policy.
    #[must_use]
    pub fn overlap(self, overlap: Overlap) -> Flow {
        Flow { overlap, ..self }
    }

    /// Sets the retry policy of failed runs: a retry keeps the steps that succeeded.
    #[must_use]
    pub fn retry(self, retry: Retry) -> Flow {
        Flow { retry, ..self }
    }

    /// Declares an input, which each run must set, or with a default.
    #[must_use]
    pub fn input(self, name: impl Into<String>, kind: InputType, default: Option<Value>) -> Flow {
        let input = Input { kind, default, one_of: Vec::new() };
        self.with(|workflow| drop(workflow.inputs.insert(name.into(), input)))
    }

    /// Sets what happens to the other steps when one fails. Default: no more steps open.
    #[must_use]
    pub fn on_error(self, on_error: OnError) -> Flow {
        self.with(|workflow| workflow.on_error = on_error)
    }

    /// Limits the duration of a run.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Flow {
        self.with(|workflow| workflow.timeout = Some(timeout))
    }

    /// Sets the output of a run, a template.
    #[must_use]
    pub fn output(self, output: Value) -> Flow {
        self.with(|workflow| workflow.output = output)
    }

    /// Adds a step.
    #[must_use]
    pub fn step(self, step: FlowStep) -> Flow {
        self.add(Phase::Main, step)
    }

    /// Adds a step that runs after the main phase has failed.
    #[must_use]
    pub fn on_failure(self, step: FlowStep) -> Flow {
        self.add(Phase::OnFailure, step)
    }

    /// Adds a step that runs last, always.
    #[must_use]
    pub fn finally(self, step: FlowStep) -> Flow {
        self.add(Phase::Finally, step)
    }

    fn add(mut self, phase: Phase, FlowStep { step, call }: FlowStep) -> Flow {
        self.calls.extend(call.map(|call| (step.name.clone(), call)));
        self.with(|workflow| workflow.steps.push(Step { phase, ..step }))
    }

    fn with(mut self, change: impl FnOnce(&mut Workflow)) -> Flow {
        change(&mut self.workflow);
        self
    }

    /// Checks the workflow, and makes sure that a job with this key runs it. If it has a schedule, the job is started. Any
    /// number of processes may call it at their start. [`StoreError::Invalid`] names all problems of the definition.
    pub async fn save(mut self, database: &Database, engine: &Engine) -> Result<JobId, StoreError> {
        use engine::Store as _;

        let app = database.ensure_app(&self.app).await?;
        // Checked with stand-ins, before anything is stored.
        let names = self.calls.keys().map(|step| (step.clone(), JobId(1)));
        self.check(&names.collect())?;
        let specs: BTreeMap<String, (String, JobSpec)> =
            self.calls.iter().map(|(step, call)| (step.clone(), own_job(app, step, call))).collect();
        let new: Vec<(String, JobSpec)> = specs.values().cloned().collect();
        let known = database.add_step_jobs(&new).await?;
        let jobs: BTreeMap<String, JobId> = specs
            .iter()
            .filter_map(|(step, (digest, _))| Some((step.clone(), known.get(digest).copied()?)))
            .collect();
        let definition = self.check(&jobs)?;
        let own: Vec<JobId> = jobs.into_values().collect();
        let workflow = database.add_workflow_of(&definition, &own, AUTHOR).await?;
        let is_scheduled = !matches!(self.schedule, Schedule::Never);
        let spec = JobSpec {
            key: Some(self.key.clone()),
            workflow: Some(workflow),
            misfire: self.misfire,
            overlap: self.overlap,
            retry: self.retry,
            ..JobSpec::new(app, std::mem::take(&mut self.name), self.schedule, "")
        };
        match database.job_by_key(&self.key).await? {
            _ if is_scheduled => engine.ensure(spec).await,
            None => engine.create(&spec).await,
            Some(job) if job.spec == spec => Ok(job.id),
            Some(job) => engine.edit(job.id, spec, None).await.map(|_| job.id),
        }
    }

    fn check(&self, jobs: &BTreeMap<String, JobId>) -> Result<Workflow, StoreError> {
        let mut workflow = self.workflow.clone();
        for step in &mut workflow.steps {
            if let (Action::Job { job, .. }, Some(own)) = (&mut step.action, jobs.get(&step.name)) {
                *job = own.0;
            }
        }
        let graph = Graph::new(workflow).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            StoreError::Invalid(format!("the workflow {} is wrong: {}", self.key, problems.join("; ")))
        })?;
        Ok(graph.definition().clone())
    }
}

/// Stored as the author of definitions.
const AUTHOR: &str = "program";

/// Job of a step, with the digest of its definition.
fn own_job(app: AppId, step: &str, call: &Call) -> (String, JobSpec) {
    let spec =
        JobSpec { retry: call.retry, ..JobSpec::new(app, step, Schedule::Never, call.handler.as_str()) };
    let digest = hex_digest(&format!("program {} {step} {call:?}", app.0));
    (digest, spec)
}

/// A step of a [`Flow`].
#[derive(Clone, Debug)]
pub struct FlowStep {
    step: Step,
    call: Option<Call>,
}

impl FlowStep {
    /// A step that calls a handler of the process.
    pub fn call(name: impl Into<String>, handler: impl Into<String>) -> FlowStep {
        let action = Action::Job { job: 0, param: Param::Own };
        let call = Call { handler: handler.into(), retry: Retry::default() };
        FlowStep { step: Step::new(name, &[], action), call: Some(call) }
    }

    /// A step that runs a job.
    pub fn job(name: impl Into<String>, job: JobId) -> FlowStep {
        FlowStep::of(name, Action::Job { job: job.0, param: Param::Own })
    }

    /// A step that runs another workflow, with these inputs, and ends with it.
    pub fn workflow(
        name: impl Into<String>,
        workflow: JobId,
        inputs: impl IntoIterator<Item = (String, Value)>,
    ) -> FlowStep {
        FlowStep::of(name, Action::Workflow { job: workflow.0, inputs: inputs.into_iter().collect() })
    }

    /// A step that waits.
    pub fn wait(name: impl Into<String>, duration: Duration) -> FlowStep {
        FlowStep::of(name, Action::Wait { duration })
    }

    /// A step that asks people: the program decides with [`Database::decide_step`].
    pub fn approval(name: impl Into<String>, ask: impl Into<String>, timeout: Option<Duration>) -> FlowStep {
        let ask = ask.into();
        FlowStep::of(name, Action::Approval { ask, approvers: Vec::new(), by_starter: true, timeout })
    }

    /// A step with any other action, for example [`Action::Depends`].
    pub fn of(name: impl Into<String>, action: Action) -> FlowStep {
        FlowStep { step: Step::new(name, &[], action), call: None }
    }

    /// Opens the step after these steps.
    #[must_use]
    pub fn needs(mut self, steps: &[&str]) -> FlowStep {
        self.step.needs.extend(steps.iter().map(|step| Need::on(*step)));
        self
    }

    /// Opens the step after another one, if an expression is true.
    #[must_use]
    pub fn needs_if(self, step: impl Into<String>, condition: impl Into<String>) -> FlowStep {
        self.need(step.into(), Branch::If(condition.into()))
    }

    /// Opens the step after another one, if no other condition there is true.
    #[must_use]
    pub fn needs_else(self, step: impl Into<String>) -> FlowStep {
        self.need(step.into(), Branch::Else)
    }

    fn need(mut self, step: String, branch: Branch) -> FlowStep {
        self.step.needs.push(Need { step, branch });
        self
    }

    /// Sets which ends of its needs open the step. Default: all have ended, none has failed, and one was taken.
    #[must_use]
    pub fn when(mut self, join: Join) -> FlowStep {
        self.step.join = join;
        self
    }

    /// Sets the parameter, a text with `${{ … }}`.
    #[must_use]
    pub fn param(self, param: impl Into<String>) -> FlowStep {
        self.with_param(Param::Text(param.into()))
    }

    /// Sets the parameter, a JSON object with `${{ … }}`.
    #[must_use]
    pub fn with(self, param: Value) -> FlowStep {
        self.with_param(Param::With(param))
    }

    fn with_param(mut self, value: Param) -> FlowStep {
        if let Action::Job { param, .. } = &mut self.step.action {
            *param = value;
        }
        self
    }

    /// Sets the retry policy of the handler. Default: no retries.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> FlowStep {
        if let Some(call) = &mut self.call {
            call.retry = retry;
        }
        self
    }

    /// Limits the duration of the step, retries included.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> FlowStep {
        self.step.timeout = Some(timeout);
        self
    }

    /// Lets others go on as if the step had succeeded when it fails.
    #[must_use]
    pub fn allow_failure(mut self) -> FlowStep {
        self.step.allow_failure = true;
        self
    }
}
