//! What an executor does with a run of a job that is still busy with another.

use std::fmt;

/// What to do when the job is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BlockStrategy {
    /// Wait in line.
    #[default]
    Serial,
    /// Refuse the new run.
    DiscardLater,
    /// Stop the running one, drop the waiting ones, start the new one.
    CoverEarly,
}

impl BlockStrategy {
    /// All of them.
    pub const ALL: [BlockStrategy; 3] =
        [BlockStrategy::Serial, BlockStrategy::DiscardLater, BlockStrategy::CoverEarly];

    /// Reads the word on the wire. Whatever is unknown means waiting in line, as for stock executors.
    pub fn read(word: &str) -> BlockStrategy {
        Self::ALL.into_iter().find(|strategy| strategy.word() == word).unwrap_or_default()
    }

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            BlockStrategy::Serial => "SERIAL_EXECUTION",
            BlockStrategy::DiscardLater => "DISCARD_LATER",
            BlockStrategy::CoverEarly => "COVER_EARLY",
        }
    }

    /// The name people see.
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
