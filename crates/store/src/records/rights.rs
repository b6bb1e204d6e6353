//! Rights of a user for an app and its jobs.

/// A set of the rights to view, operate, edit and write scripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rights(u8);

impl Rights {
    /// No rights.
    pub const NONE: Rights = Rights(0);
    /// See jobs, runs and logs.
    pub const VIEW: Rights = Rights(1);
    /// Start, stop and trigger jobs, and cancel runs.
    pub const OPERATE: Rights = Rights(2);
    /// Create, change and delete jobs.
    pub const EDIT: Rights = Rights(4);
    /// Write scripts, which run on executors.
    pub const SCRIPT: Rights = Rights(8);
    /// Rights that XXL-JOB's permission for an app includes: all except writing scripts, which is a separate right
    /// here.
    pub const MEMBER: Rights = Rights(1 | 2 | 4);
    /// All rights.
    pub const ALL: Rights = Rights(1 | 2 | 4 | 8);

    /// Whether all of `others` are in this set.
    pub fn contains(self, others: Rights) -> bool {
        self.0 & others.0 == others.0
    }

    /// Union of both sets.
    pub fn with(self, others: Rights) -> Rights {
        Rights(self.0 | others.0)
    }

    /// Intersection of both sets.
    pub fn both(self, others: Rights) -> Rights {
        Rights(self.0 & others.0)
    }

    /// This set without `others`.
    pub fn without(self, others: Rights) -> Rights {
        Rights(self.0 & !others.0)
    }

    /// The number stored in the tables.
    pub(super) fn to_number(self) -> i64 {
        self.0.into()
    }

    /// Ignores rights added by newer versions.
    pub(super) fn from_number(number: i64) -> Rights {
        Rights(u8::try_from(number & i64::from(Rights::ALL.0)).unwrap_or(0))
    }
}
