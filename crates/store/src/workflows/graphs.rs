//! Definitions of workflows, and their checked forms.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use engine::{JobId, StoreError, WorkflowId};
use sha2::{Digest, Sha256};
use timer::Timestamp;
use workflow::Graph;
use workflow::definition::Workflow;

use super::step_jobs;
use crate::database::Tables;
use crate::session::{Lock, Session, SessionError, Value};
use crate::table::table;

/// Checked definitions that were used lately.
#[derive(Default)]
pub struct Graphs {
    graphs: Mutex<BTreeMap<WorkflowId, Arc<Graph>>>,
}

impl Graphs {
    fn get(&self, id: WorkflowId) -> Option<Arc<Graph>> {
        self.graphs.lock().expect("no holder of this lock panics").get(&id).cloned()
    }

    fn keep(&self, id: WorkflowId, graph: Arc<Graph>) {
        let mut graphs = self.graphs.lock().expect("no holder of this lock panics");
        graphs.insert(id, graph);
        // The oldest definition first: newer ones replace it.
        let mut steps: usize = graphs.values().map(|graph| graph.len()).sum();
        while steps > STEPS_MAX && graphs.len() > 1 {
            let Some((oldest, _)) = graphs.iter().find(|(known, _)| **known != id) else { break };
            let oldest = *oldest;
            steps -= graphs.remove(&oldest).map_or(0, |graph| graph.len());
        }
    }
}

/// Maximum number of steps of all kept definitions: about 1 KiB each.
const STEPS_MAX: usize = 20_000;

/// A stored definition.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowRow {
    /// Id of the definition.
    pub id: WorkflowId,
    /// The definition.
    pub definition: Workflow,
    /// User who saved it last.
    pub author: String,
    /// Time when it was last saved, replaced or resumed.
    pub at: Timestamp,
}

/// A definition to store.
#[derive(Clone, Copy)]
struct NewDefinition<'a> {
    body: &'a str,
    digest: &'a str,
    steps: i64,
    author: &'a str,
    now: Timestamp,
}

table! {
    /// Row of `tw_workflow`.
    struct DefinitionRow in "tw_workflow" of new: NewDefinition<'_> {
        body: String = new.body,
        author: String = new.author,
        at_ms: Timestamp = new.now,
    }
    not inserted { id: WorkflowId }
    not read { digest = new.digest, steps = new.steps }
}

/// The checked form of a definition.
pub async fn graph(s: &mut dyn Session, tables: &Tables, id: WorkflowId) -> Result<Arc<Graph>, SessionError> {
    if let Some(graph) = tables.graphs.get(id) {
        return Ok(graph);
    }
    let missing = || StoreError::Schema(format!("the definition {} of a workflow does not exist", id.0));
    let row = select_definition(s, id).await?.ok_or_else(missing)?;
    let unusable = |problems: Vec<workflow::Problem>| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        StoreError::Schema(format!("the definition {} of a workflow is invalid: {first}", id.0))
    };
    let graph = Arc::new(Graph::new(row.definition).map_err(unusable)?);
    tables.graphs.keep(id, Arc::clone(&graph));
    Ok(graph)
}

/// Reads a definition.
pub async fn select_definition(
    s: &mut dyn Session,
    id: WorkflowId,
) -> Result<Option<WorkflowRow>, SessionError> {
    Ok(select_definitions(s, Value::Ids(vec![id.0])).await?.pop())
}

/// Reads the definitions with these ids, in any order.
pub async fn select_definitions(s: &mut dyn Session, ids: Value) -> Result<Vec<WorkflowRow>, SessionError> {
    let sql = format!("SELECT {} FROM tw_workflow WHERE id IN ?", DefinitionRow::LIST);
    let read = |row: crate::session::Row| -> Result<_, SessionError> {
        let row = DefinitionRow::read(&mut row.read())?;
        let unreadable = |error| {
            StoreError::Schema(format!("the definition {} of a workflow cannot be read: {error}", row.id.0))
        };
        let definition = serde_json::from_str(&row.body).map_err(unreadable)?;
        Ok(WorkflowRow { id: row.id, definition, author: row.author, at: row.at_ms })
    };
    s.query(&sql, &[ids], Lock::None).await?.into_iter().map(read).collect()
}

/// User who saved each definition last, and when.
pub async fn saved(
    s: &mut dyn Session,
    ids: Vec<WorkflowId>,
) -> Result<BTreeMap<WorkflowId, (String, Timestamp)>, SessionError> {
    let ids = Value::Ids(ids.into_iter().map(|id| id.0).collect());
    let rows = s.query("SELECT id, author, at_ms FROM tw_workflow WHERE id IN ?", &[ids], Lock::None).await?;
    let read = |row: crate::session::Row| -> Result<_, SessionError> {
        let mut row = row.read();
        Ok((WorkflowId(row.int()?), (row.text()?, row.instant()?)))
    };
    rows.into_iter().map(read).collect()
}

/// Changes the time of definitions that are needed or replaced now, and locks them. Returns how many of them exist.
pub async fn touch(s: &mut dyn Session, now: Timestamp, ids: &BTreeSet<i64>) -> Result<u64, SessionError> {
    let ids = Value::Ids(ids.iter().copied().collect());
    s.execute("UPDATE tw_workflow SET at_ms = ? WHERE id IN ?", &[now.into(), ids]).await
}

/// SHA-256 of a text, in hexadecimal.
pub fn hex_digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Stores a definition that was checked. One that exists already keeps its id. `own` are jobs of its steps that must
/// exist.
pub async fn insert_definition(
    s: &mut dyn Session,
    definition: &Workflow,
    own: &[JobId],
    author: &str,
) -> Result<WorkflowId, SessionError> {
    let unwritable = |error| StoreError::Invalid(format!("the workflow cannot be stored: {error}"));
    let body = serde_json::to_string(definition).map_err(unwritable)?;
    crate::schema::check_text(&body)?;
    let digest = hex_digest(&body);
    let sql = "SELECT id, body FROM tw_workflow WHERE digest = ? ORDER BY id DESC LIMIT 1";
    let now = s.now().await?;
    if let Some(row) = s.query(sql, &[Value::from(digest.as_str())], Lock::None).await?.into_iter().next() {
        let mut row = row.read();
        let id = WorkflowId(row.int()?);
        if row.text()? == body {
            let sql = "UPDATE tw_workflow SET author = ?, at_ms = ? WHERE id = ?";
            // None if it was deleted just now.
            if s.execute(sql, &[author.into(), now.into(), id.into()]).await? > 0 {
                return Ok(id);
            }
        }
    }
    let steps = i64::try_from(definition.steps.len()).unwrap_or(i64::MAX);
    let (into, row) = DefinitionRow::INSERT;
    let new = NewDefinition { body: &body, digest: &digest, steps, author, now };
    let ids = s.insert_numbered(into, vec![row(new)]).await?;
    let none = || StoreError::Schema("the database returned no id for a new row".into());
    let id = ids.first().copied().ok_or_else(none)?;
    let found = step_jobs::register(s, id, definition).await?;
    match own.iter().all(|job| found.contains(&job.0)) {
        true => Ok(WorkflowId(id)),
        false => Err(StoreError::Conflict(
            "the job of a step was deleted just now; save the workflow again".into(),
        )
        .into()),
    }
}
