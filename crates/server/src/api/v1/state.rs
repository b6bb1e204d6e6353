//! Parts of a node that `/v1` uses.

use std::sync::Arc;

use cron::Zone;
use engine::Engine;
use protocol::v1::SettingView;
use store::Database;
use timer::Clock;
use tokio_util::sync::CancellationToken;

use super::events::Streams;
use crate::audit::Audit;
use crate::centre::{Origin, ServerState};
use crate::executors::{Directory, Registrar};
use crate::http::BodySlots;
use crate::jobs::JobRules;
use crate::outbound::Outbound;
use crate::rate::Rates;
use crate::runs::TraceRecorder;
use crate::runs::log::LogReader;
use crate::telemetry::{Hints, Lateness};
use crate::users::Users;

/// Parts of a node that this API uses.
pub struct V1State {
    pub database: Arc<Database>,
    pub engine: Engine,
    pub directory: Arc<Directory>,
    pub registrar: Arc<Registrar>,
    pub outbound: Outbound,
    pub clock: Arc<dyn Clock>,
    pub users: Arc<Users>,
    pub audit: Arc<Audit>,
    pub body_slots: Arc<BodySlots>,
    pub jobs: JobRules,
    pub logs: LogReader,
    pub traces: Arc<TraceRecorder>,
    pub lateness: Arc<Lateness>,
    /// Change notifications for clients of event streams.
    pub hints: Arc<Hints>,
    /// Open event streams.
    pub streams: Streams,
    /// Ends the event streams when the node stops.
    pub closing: CancellationToken,
    /// Rate limit per user.
    pub callers: Arc<Rates>,
    /// Time zone of jobs without one, and of times shown to users.
    pub zone: Zone,
    /// Whether script jobs are allowed.
    pub scripts: bool,
    /// Identity of the node.
    pub origin: Arc<Origin>,
    /// Settings, as shown to users.
    pub settings: Vec<SettingView>,
}

impl V1State {
    /// Takes the parts from a node.
    pub fn of(node: &ServerState) -> V1State {
        V1State {
            database: node.database.clone(),
            engine: node.engine.clone(),
            directory: node.directory.clone(),
            registrar: node.registrar.clone(),
            outbound: node.outbound.clone(),
            clock: node.clock.clone(),
            users: node.users.clone(),
            audit: node.audit.clone(),
            body_slots: node.body_slots.clone(),
            jobs: JobRules::of(node),
            logs: LogReader::of(node),
            traces: node.traces.clone(),
            lateness: node.lateness.clone(),
            hints: node.hints.clone(),
            streams: Streams::default(),
            closing: node.closing.clone(),
            callers: node.callers.clone(),
            zone: node.zone.clone(),
            scripts: node.scripts,
            origin: node.origin.clone(),
            settings: node.settings.clone(),
        }
    }
}
