//! The functions marked `#[scheduled]`, found without a list.

use crate::{Handle, Scheduler};

/// A function marked [`#[scheduled]`](crate::scheduled). The attribute writes these.
#[derive(Debug)]
pub struct Scheduled {
    /// Where the function stands, or the name it was given.
    pub name: &'static str,
    /// Schedules it under its name.
    pub start: fn(&Scheduler, &'static str) -> Handle,
}

inventory::collect!(Scheduled);
