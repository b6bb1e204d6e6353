//! Registry of the functions marked `#[scheduled]`.

use crate::{Handle, Scheduler};

/// A function marked [`#[scheduled]`](crate::scheduled), registered by the attribute.
#[derive(Debug)]
pub struct Scheduled {
    /// Path of the function, or the name given in the attribute.
    pub name: &'static str,
    /// Schedules the function under its name.
    pub start: fn(&Scheduler, &'static str) -> Handle,
}

inventory::collect!(Scheduled);
