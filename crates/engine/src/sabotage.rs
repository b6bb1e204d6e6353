//! Deliberate bugs. Tests enable one and prove that the simulation finds it; they require the `sabotage` feature.

/// A deliberate bug, with the guarantee it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A job advances in one commit and its runs are written in another (I1). Implemented by the simulated store.
    AdvanceWithoutRow,
    /// A report is acknowledged before it is written (I8).
    AckBeforeCommit,
    /// A fenced node sends runs that it still holds (I2, I18).
    NoFencing,
    /// A request without a response is repeated under a new id (I2).
    ResendWithNewId,
    /// The expiry of a lease is judged by the node's own wall clock (I2, I4).
    OwnClock,
    /// Runs that a dead node may have sent are sent again without asking (I2).
    RescueWithoutProbe,
    /// A stop is acknowledged before the nodes have taken back their claimed runs (I7).
    StopWithoutConfirm,
    /// Of a batch of changes, only the first transaction is confirmed by the nodes (I7).
    ConfirmFirstStep,
    /// Missed scheduled times are dropped without a record (I5).
    SilentMisfire,
    /// The next scheduled time is computed from now, not from the last one (I1).
    NextFromNow,
    /// Runs are sent as soon as they are claimed (I4).
    SendEarly,
    /// A failed run is retried once more than its job allows (I11).
    OneRetryTooMany,
    /// Runs held through an outage are sent however late they are (I6).
    SendHoweverLate,
    /// Runs whose first request certainly did not arrive are sent again however late they are (I6).
    ResendHoweverLate,
    /// A node claims before it has adopted the jobs that others wrote into the database (I1).
    ClaimBeforeAdopting,
    /// A late result does not replace the outcome of a run that was unknown to have started (I8). Implemented by the
    /// simulated store, as are the following.
    KeepAmbiguous,
    /// Results of runs that a Java admin started are acknowledged and discarded (I8).
    DropJavaResults,
    /// Results that a Java admin stored are not seen (I8, I11). Implemented by the store, as is the following.
    BlindToStoredResults,
    /// Fires that a Java admin has taken ahead fire again after an edit or a start (I2).
    BlindToTakenFires,
    /// A node does not notice that the database has lost commits (I24).
    TrustDatabase,
    /// The ids of runs continue without a gap on a database server that lacks commits (I24). Implemented by the
    /// simulated database.
    ReuseRunIds,
    /// Results that the database has lost are not stored again (I24).
    ForgetResults,
    /// The place of a run in a backfill is given again when the run succeeds after it was given up (B2). Implemented by
    /// the store.
    PlaceGivenTwice,
    /// An executor that answers or registers again stays suspended (I1). Implemented by the simulated network.
    CircuitStaysOpen,
    /// Executors that registered at another node are not noticed at once (I1). Implemented by the simulated
    /// registry.
    BlindToRegistrations,
    /// A resumed workflow run keeps steps that failed (W8). Implemented by the store, as are the following.
    KeepFailedSteps,
    /// A step with several needs opens when the first of them has ended (W1).
    OpenAtFirstEnd,
    /// The end of a step counts twice at the steps that need it (W2).
    CountEndsTwice,
    /// The steps that need a skipped one do not learn of it (W5).
    StopAtSkips,
    /// A workflow run uses the current definition, not the one that it began with (W7).
    ReadLatestDefinition,
    /// A step that can never open does not end (W4).
    LeaveUnreached,
    /// A second decision about a step replaces the first one (W13).
    DecideTwice,
    /// A step that depends on runs of another job takes any success, not the newest run (W14).
    TakeAnySuccess,
    /// A step that depends on runs of another job looks at them first, and is notified of ends from then on (W14).
    LookBeforeRegistering,
}

/// Enabled deliberate bug: always none without the `sabotage` feature.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bugs {
    #[cfg(feature = "sabotage")]
    on: Option<Sabotage>,
}

impl Bugs {
    /// Enables one bug.
    #[cfg(feature = "sabotage")]
    pub fn with(sabotage: Sabotage) -> Self {
        Bugs { on: Some(sabotage) }
    }

    /// Whether this bug is enabled.
    pub fn has(self, _sabotage: Sabotage) -> bool {
        #[cfg(feature = "sabotage")]
        return self.on == Some(_sabotage);
        #[cfg(not(feature = "sabotage"))]
        false
    }
}
