//! Metrics of a node, for Prometheus.

use std::sync::atomic::AtomicU64;

use engine::{Disposition, Outcome, Receipt, Status, StepEvent};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Counters, gauges and histograms of one node.
pub struct Metrics {
    registry: Registry,
    lateness: Histogram,
    claims: Histogram,
    completions: Histogram,
    claimed: Counter,
    over: Family<As, Counter>,
    sent: Family<As, Counter>,
    reported: Family<As, Counter>,
    run_logs: Family<As, Counter>,
    ready: Gauge,
    may_send: Gauge,
    clock_skew: Gauge<f64, AtomicU64>,
    held: Gauge,
    answers_waiting: Gauge,
    ends_waiting: Gauge,
    executors: Family<As, Gauge>,
}

/// One label is enough for each family: the outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct As {
    outcome: &'static str,
}

impl Metrics {
    /// Creates all metrics at zero, and visible from the start.
    pub fn new() -> Self {
        let metrics = Metrics {
            registry: Registry::with_prefix("tickwright"),
            lateness: Histogram::new(SECONDS),
            claims: Histogram::new(SECONDS),
            completions: Histogram::new(SECONDS),
            claimed: Counter::default(),
            over: Family::default(),
            sent: Family::default(),
            reported: Family::default(),
            run_logs: Family::default(),
            ready: Gauge::default(),
            may_send: Gauge::default(),
            clock_skew: Gauge::default(),
            held: Gauge::default(),
            answers_waiting: Gauge::default(),
            ends_waiting: Gauge::default(),
            executors: Family::default(),
        };
        let families = [
            (&metrics.sent, &["accepted", "refused", "unknown"][..]),
            (&metrics.reported, &["succeeded", "failed", "timed_out"]),
            (&metrics.over, &["succeeded", "failed", "timed_out", "lost", "cancelled", "not_run"]),
            (&metrics.run_logs, &["kept", "too_many", "unreachable", "not_written"]),
        ];
        // A series must exist before its rate can be queried.
        for (family, outcomes) in families {
            outcomes.iter().for_each(|outcome| drop(family.get_or_create(&As { outcome })));
        }
        metrics.registered()
    }

    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        let times = [
            (
                "lateness",
                "Dispatch latency: time from the scheduled time of a run until it was sent to an executor",
                &self.lateness,
            ),
            ("claim", "Duration of claims that returned runs, including the commit", &self.claims),
            ("completion", "Duration of storing results of runs, including the commit", &self.completions),
        ];
        for (name, help, histogram) in times {
            registry.register_with_unit(name, help, Unit::Seconds, histogram.clone());
        }
        registry.register("runs_claimed", "Runs claimed by this node", self.claimed.clone());
        registry.register("runs_over", "Runs completed by this node, by result", self.over.clone());
        registry.register("sent", "Runs sent to executors, by response", self.sent.clone());
        registry.register("results", "Results reported by executors", self.reported.clone());
        registry.register(
            "run_logs",
            "Logs of finished runs, by whether they were stored",
            self.run_logs.clone(),
        );
        registry.register("ready", "1 if this node may claim runs, otherwise 0", self.ready.clone());
        registry.register("lease", "1 if this node holds its lease, otherwise 0", self.may_send.clone());
        registry.register_with_unit(
            "clock_skew",
            "Clock skew: this machine's clock minus the database's",
            Unit::Seconds,
            self.clock_skew.clone(),
        );
        registry.register(
            "runs_in_hand",
            "Claimed runs that wait on this node for their scheduled time",
            self.held.clone(),
        );
        registry.register(
            "answers_waiting",
            "Responses of executors that are not stored yet",
            self.answers_waiting.clone(),
        );
        registry.register(
            "ends_waiting",
            "Results of runs that are not stored yet",
            self.ends_waiting.clone(),
        );
        registry.register(
            "executors",
            "Registered executors, by whether they are reachable",
            self.executors.clone(),
        );
        self
    }

    /// Counts a step of the engine.
    pub fn on(&self, event: &StepEvent<'_>) {
        match event {
            StepEvent::Claimed { orders, took } => {
                self.claims.observe(took.as_secs_f64());
                self.claimed.inc_by(orders.len() as u64);
            }
            StepEvent::Dispatched { late, .. } => self.lateness.observe(late.as_secs_f64()),
            StepEvent::Answered { receipt, .. } => count(&self.sent, answer(receipt)),
            StepEvent::Reported { outcome, .. } => count(&self.reported, report(outcome)),
            StepEvent::Stored { took } => self.completions.observe(took.as_secs_f64()),
            StepEvent::Completed { outcome, .. } => count(&self.over, end(outcome)),
        }
    }

    /// Counts logs of finished runs by whether they were stored.
    pub fn log_kept(&self, outcome: &'static str, logs: usize) {
        self.run_logs.get_or_create(&As { outcome }).inc_by(logs as u64);
    }

    /// Renders the metrics in Prometheus's text format.
    pub fn render(&self, status: &Status, (reachable, suspect): (usize, usize)) -> String {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.ready.set(i64::from(status.may_claim));
        self.may_send.set(i64::from(status.may_send));
        self.clock_skew.set(status.skew.millis as f64 / 1_000.0);
        self.held.set(number(status.held));
        self.answers_waiting.set(number(status.answers_waiting));
        self.ends_waiting.set(number(status.ends_waiting));
        self.executors.get_or_create(&As { outcome: "reachable" }).set(number(reachable));
        self.executors.get_or_create(&As { outcome: "suspect" }).set(number(suspect));
        let mut page = String::new();
        text::encode(&mut page, &self.registry).expect("writing to a string does not fail");
        page
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics::new()
    }
}

fn count(family: &Family<As, Counter>, outcome: &'static str) {
    family.get_or_create(&As { outcome }).inc();
}

/// Label of an executor's answer to a dispatch, or of a missing one.
fn answer(receipt: &Receipt) -> &'static str {
    match receipt {
        Receipt::Accepted { .. } => "accepted",
        Receipt::Refused { .. } => "refused",
        Receipt::Deferred { .. } => "deferred",
        Receipt::Unknown { .. } => "unknown",
    }
}

/// Label of an executor's report.
fn report(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded(_) => "succeeded",
        Outcome::TimedOut(_) => "timed_out",
        _ => "failed",
    }
}

/// Label of the result of a run.
fn end(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded(_) => "succeeded",
        Outcome::Failed(_) | Outcome::FailedWith(..) => "failed",
        Outcome::TimedOut(_) => "timed_out",
        Outcome::Lost(_) | Outcome::Ambiguous(_) => "lost",
        Outcome::Cancelled(_) | Outcome::Dropped(Disposition::Cancelled, _) => "cancelled",
        Outcome::Refused(_) | Outcome::Dropped(..) => "not_run",
    }
}

/// Histogram buckets: we guarantee milliseconds; seconds are trouble.
const SECONDS: [f64; 12] = [0.001, 0.002, 0.005, 0.010, 0.020, 0.050, 0.100, 0.250, 0.500, 1.0, 5.0, 60.0];
