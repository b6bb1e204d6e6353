//! Deliberate bugs. Tests switch one on and show that the simulation finds it; without the `sabotage` feature none of
//! them can be.

/// A deliberate bug: what it breaks stands beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A job moves on in one commit, its runs are written in another (I1). The simulated store does this one.
    AdvanceWithoutRow,
    /// A report is acknowledged before it is written (I8).
    AckBeforeCommit,
    /// A node that was declared dead sends what it still holds (I2, I18).
    NoFencing,
    /// A request without an answer is repeated under a new id (I2).
    ResendWithNewId,
    /// Whether a lease is over is judged by the node's own wall clock (I2, I4).
    OwnClock,
    /// What a dead node may have sent is sent again without asking (I2).
    RescueWithoutProbe,
    /// A stop is acknowledged before the nodes have taken back what they hold (I7).
    StopWithoutConfirm,
    /// Missed instants are passed over without a word (I5).
    SilentMisfire,
    /// The next instant is counted from now, not from the last one (I1).
    NextFromNow,
    /// Runs leave as soon as they are claimed (I4).
    SendEarly,
    /// A failed run is tried once more than its job allows (I11).
    OneRetryTooMany,
}

/// Which deliberate bug is switched on: none, unless built with the `sabotage` feature.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bugs {
    #[cfg(feature = "sabotage")]
    on: Option<Sabotage>,
}

impl Bugs {
    /// This one.
    #[cfg(feature = "sabotage")]
    pub fn with(sabotage: Sabotage) -> Self {
        Bugs { on: Some(sabotage) }
    }

    /// Whether this one is on.
    pub fn has(self, _sabotage: Sabotage) -> bool {
        #[cfg(feature = "sabotage")]
        return self.on == Some(_sabotage);
        #[cfg(not(feature = "sabotage"))]
        false
    }
}
