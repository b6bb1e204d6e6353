//! What somebody may do with an app and its jobs.

/// Some of the rights to view, operate, edit and write scripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rights(u8);

impl Rights {
    /// Nothing.
    pub const NONE: Rights = Rights(0);
    /// See jobs, runs and logs.
    pub const VIEW: Rights = Rights(1);
    /// Start, stop and trigger jobs, and end runs.
    pub const OPERATE: Rights = Rights(2);
    /// Create, change and delete jobs.
    pub const EDIT: Rights = Rights(4);
    /// Write scripts, which run on executors.
    pub const SCRIPT: Rights = Rights(8);
    /// What XXL-JOB's permission for an app stands for: all but writing scripts, which is a right of its own here.
    pub const MEMBER: Rights = Rights(1 | 2 | 4);
    /// Everything.
    pub const ALL: Rights = Rights(1 | 2 | 4 | 8);

    /// Whether all of these are among them.
    pub fn contains(self, others: Rights) -> bool {
        self.0 & others.0 == others.0
    }

    /// These and those.
    pub fn with(self, others: Rights) -> Rights {
        Rights(self.0 | others.0)
    }

    /// Those that are in both.
    pub fn both(self, others: Rights) -> Rights {
        Rights(self.0 & others.0)
    }

    /// These without those.
    pub fn without(self, others: Rights) -> Rights {
        Rights(self.0 & !others.0)
    }

    /// Their number in the tables.
    pub(super) fn to_number(self) -> i64 {
        self.0.into()
    }

    /// What a newer version has added means nothing here.
    pub(super) fn from_number(number: i64) -> Rights {
        Rights(u8::try_from(number & i64::from(Rights::ALL.0)).unwrap_or(0))
    }
}
