//! `/v1/jobs/{job}/versions`: versions of the workflow of a job.

use engine::{Job, WorkflowId};
use protocol::v1::{ProblemCode, RestoreVersion, WorkflowBody, WorkflowVersion};
use store::WorkflowVersion as Stored;

use super::authorise::Authorised;
use super::call::{Call, instant};
use super::reply::Reply;
use super::{history, jobs, workflow_definitions, workflows};
use crate::request_error::RequestError;

pub async fn list(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    let versions = stored(&call, &job).await?;
    let views = (0..versions.len()).map(|index| view(&versions, index));
    Ok(Reply::json(&views.collect::<Vec<_>>()))
}

pub async fn show(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    let (version, workflow) = find(&call, &job).await?;
    let text = Some(workflows::written(&workflow)?);
    Ok(Reply::json(&WorkflowVersion { workflow: Some(workflow), text, ..version }))
}

/// Saves an earlier definition with the rights of the caller: he must be allowed to save what it contains.
pub async fn restore(call: Call, job: Authorised<Job>) -> Result<Reply, RequestError> {
    let RestoreVersion { remark } = call.json_or_default()?;
    let (_, workflow) = find(&call, &job).await?;
    jobs::put_workflow(&call, job.into_inner(), WorkflowBody { remark, ..workflow }).await
}

/// Versions that the caller may see, the newest first.
async fn stored(call: &Call, job: &Job) -> Result<Vec<Stored>, RequestError> {
    let Some(current) = job.spec.workflow else {
        return Err(RequestError::new(ProblemCode::Conflict, "this job is no workflow"));
    };
    let mut versions = call.state.database.workflow_versions(job.id, current).await?;
    if let Some(moved) = history::hidden_before(call, job.id).await? {
        // The newest one is what runs now.
        let visible = versions.iter().skip(1).take_while(|version| moved.shows(version.at)).count();
        versions.truncate(1 + visible);
    }
    Ok(versions)
}

fn view(versions: &[Stored], index: usize) -> WorkflowVersion {
    let Stored { version, workflow, author, remark, at } = &versions[index];
    let is_same = |earlier: &&Stored| earlier.workflow == *workflow;
    WorkflowVersion {
        version: *version,
        by: author.clone(),
        remark: remark.clone(),
        saved_at: instant(*at),
        same_as: versions[index + 1..].iter().find(is_same).map(|earlier| earlier.version),
        workflow: None,
        text: None,
    }
}

/// The version that the request names, and its definition as the caller may see it.
async fn find(call: &Call, job: &Job) -> Result<(WorkflowVersion, WorkflowBody), RequestError> {
    let versions = stored(call, job).await?;
    let wanted = call.named("version").parse::<u32>().ok();
    let found = versions.iter().position(|version| Some(version.version) == wanted);
    let index = found.ok_or_else(|| RequestError::not_found("the workflow has no such version"))?;
    let id: WorkflowId = versions[index].workflow;
    let gone = || RequestError::not_found("the definition of this version does not exist any more");
    let row = call.state.database.workflow(id).await?.ok_or_else(gone)?;
    let body = workflow_definitions::shown(call, &row.definition, job.spec.app).await?;
    Ok((view(&versions, index), body))
}
