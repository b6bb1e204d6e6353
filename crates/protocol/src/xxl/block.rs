//! Block strategies: how an executor handles a run while another run of the same job is active.

use std::fmt;

/// How to handle a new run while another one is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BlockStrategy {
    /// Queue the new run.
    #[default]
    Serial,
    /// Reject the new run.
    DiscardLater,
    /// Stop the active run, drop the queued ones and start the new one.
    CoverEarly,
}

impl BlockStrategy {
    /// All strategies.
    pub const ALL: [BlockStrategy; 3] =
        [BlockStrategy::Serial, BlockStrategy::DiscardLater, BlockStrategy::CoverEarly];

    /// Parses the name used by the protocol. An unknown name means [`BlockStrategy::Serial`], as in stock
    /// executors.
    pub fn read(word: &str) -> BlockStrategy {
        Self::ALL.into_iter().find(|strategy| strategy.word() == word).unwrap_or_default()
    }

    /// Name used by the protocol.
    pub fn word(self) -> &'static str {
        match self {
            BlockStrategy::Serial => "SERIAL_EXECUTION",
            BlockStrategy::DiscardLater => "DISCARD_LATER",
            BlockStrategy::CoverEarly => "COVER_EARLY",
        }
    }

    /// Name shown to users.
    pub fn title(self) -> &'static str {
        match self {
            BlockStrategy::Serial => "Serial Execution",
            BlockStrategy::DiscardLater => "Discard Later",
            BlockStrategy::CoverEarly => "Cover Early",
        }
    }
}

impl fmt::Display for BlockStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
