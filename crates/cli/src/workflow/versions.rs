//! `tickwright workflow versions` and `restore`.

use anyhow::{Context, Result};
use protocol::v1::{JobView, RestoreVersion, WorkflowVersion};

use crate::api::{Call, Client, Output, path};
use crate::terminal::{self, Mood, Paint};

/// Lists the versions of a workflow, or prints the definition of one.
pub async fn show(client: &Client, workflow: &str, version: Option<u32>, output: Output) -> Result<()> {
    let Some(version) = version else {
        return list(client, workflow, output).await;
    };
    let call = Call::get(path("/v1/jobs/", workflow, &format!("/versions/{version}")));
    let found: WorkflowVersion = client.fetch(call).await.with_context(|| about(workflow, version))?;
    match output {
        Output::Json => terminal::say_json(&found),
        Output::Table => terminal::say(found.text.as_deref().unwrap_or_default().trim_end()),
    }
}

async fn list(client: &Client, workflow: &str, output: Output) -> Result<()> {
    let found = client.fetch(Call::get(path("/v1/jobs/", workflow, "/versions"))).await;
    let found: Vec<WorkflowVersion> = found.with_context(|| format!("job `{workflow}`"))?;
    if output == Output::Json {
        return terminal::say_json(&found);
    }
    let paint = Paint::stdout();
    let current = found.first().map(|first| first.version);
    let row = |version: &WorkflowVersion| {
        let state = match version.same_as {
            _ if Some(version.version) == current => "current".to_owned(),
            Some(same) => format!("same as {same}"),
            None => String::new(),
        };
        vec![
            paint.cell(version.version.to_string(), Mood::Plain),
            paint.cell(terminal::local(version.saved_at), Mood::Plain),
            paint.cell(&version.by, Mood::Plain),
            paint.cell(state, Mood::Quiet),
            paint.cell(&version.remark, Mood::Plain),
        ]
    };
    let heads = ["VERSION", "SAVED", "BY", "STATE", "REMARK"];
    terminal::say(&terminal::table(&heads, found.iter().map(row)))
}

/// Saves the definition of an earlier version again.
pub async fn restore(
    client: &Client,
    workflow: &str,
    version: u32,
    remark: String,
    output: Output,
) -> Result<()> {
    let call = Call::post(path("/v1/jobs/", workflow, &format!("/versions/{version}/restore")));
    let restored = client.fetch(call.json(&RestoreVersion { remark })).await;
    let restored: JobView = restored.with_context(|| about(workflow, version))?;
    match output {
        Output::Json => terminal::say_json(&restored),
        Output::Table => terminal::say(&format!("version {version} of {workflow} restored")),
    }
}

fn about(workflow: &str, version: u32) -> String {
    format!("version {version} of job `{workflow}`")
}
