//! Schedule and policies of a job.

use crate::word::words;

words! {
    "cron dialect";
    /// Syntax of a cron expression.
    pub enum CronDialect = Quartz {
        /// Six or seven fields, the first is seconds.
        Quartz: "quartz",
        /// Five fields, the first is minutes.
        Unix: "unix",
    }
}

words! {
    "routing strategy";
    /// Routing strategy: how the executor of a run is selected.
    pub enum Route = First {
        /// First executor of the list.
        First: "first" / "FIRST",
        /// Last executor of the list.
        Last: "last" / "LAST",
        /// Each executor in turn.
        RoundRobin: "round_robin" / "ROUND",
        /// A random executor.
        Random: "random" / "RANDOM",
        /// Consistent hash of the job: the same executor each time, as long as it is registered.
        ConsistentHash: "consistent_hash" / "CONSISTENT_HASH",
        /// Executor that was selected least often for the job.
        LeastFrequentlyUsed: "least_frequently_used" / "LEAST_FREQUENTLY_USED",
        /// Executor that was not selected for the job for the longest time.
        LeastRecentlyUsed: "least_recently_used" / "LEAST_RECENTLY_USED",
        /// First executor that responds.
        Failover: "failover" / "FAILOVER",
        /// First executor that has no active run of the job.
        FirstIdle: "first_idle" / "BUSYOVER",
        /// All executors, one shard each.
        Broadcast: "broadcast" / "SHARDING_BROADCAST",
    }
}

words! {
    "block strategy";
    /// Block strategy: how an executor handles a run while another run of the job is active on it.
    pub enum Block = Serial {
        /// Queue the new run.
        Serial: "serial" / "SERIAL_EXECUTION",
        /// Reject the new run.
        DiscardLater: "discard_later" / "DISCARD_LATER",
        /// Stop the active run, drop the queued ones and start the new run.
        CoverEarly: "cover_early" / "COVER_EARLY",
    }
}

words! {
    "overlap policy";
    /// Overlap policy: how to handle a fire while another run of the job is active on any executor.
    pub enum Overlap = Allow {
        /// Dispatch it anyway.
        Allow: "allow",
        /// Skip it; it is recorded as blocked.
        Skip: "skip",
        /// Wait until the other run has finished. At most 100 runs wait; further ones are blocked.
        Wait: "wait",
        /// Cancel the other run, then dispatch it.
        Replace: "replace",
    }
}

impl Overlap {
    /// Maximum number of runs of one job that may wait for another to finish.
    pub const MAX_WAITING: u64 = 100;

    /// Whether only one run of the job may be open at a time.
    pub fn is_exclusive(self) -> bool {
        self != Overlap::Allow
    }
}

words! {
    "kind of days";
    /// Days of a work calendar on which a job fires.
    pub enum OnDays = Work {
        /// Workdays.
        Work: "work",
        /// Days off.
        Off: "off",
        /// All days, up to the end of the calendar's data if the calendar stops there.
        Any: "any",
    }
}

words! {
    "shift of days";
    /// How to handle a scheduled time on a day on which the job does not fire. A moved time keeps its time of day; times
    /// that meet on one day fire once.
    pub enum Shift = Skip {
        /// It does not fire.
        Skip: "skip",
        /// It moves to the next day on which the job fires.
        Next: "next",
        /// It moves to the previous day on which the job fires.
        Previous: "previous",
        /// It moves to the nearest day on which the job fires; of two at the same distance, to the later one.
        Nearest: "nearest",
    }
}

words! {
    "rule for days beyond the data";
    /// Whether a job fires on days after the data of its work calendar.
    pub enum Beyond = Weekdays {
        /// The weekdays decide; previews mark such fires as assumed.
        Weekdays: "weekdays",
        /// Nothing fires until the calendar has more data.
        Stop: "stop",
    }
}

words! {
    "delivery policy";
    /// Delivery policy: how to continue when a request was, or may have been, sent but no response arrived.
    pub enum Delivery = Probe {
        /// Never send again: the run fails as ambiguous, and a retry is a new attempt.
        AtMostOnce: "at_most_once" / "at-most-once",
        /// Ask the executor, and send again if it does not know the run.
        Probe: "probe",
        /// Send again until an executor accepts the run. For executors that remember accepted runs, or idempotent
        /// handlers.
        AtLeastOnce: "at_least_once" / "at-least-once",
    }
}

words! {
    "children mode";
    /// How often the child jobs of a job with shards run.
    pub enum ChildrenMode = Once {
        /// Once, when all shards of the fire have succeeded.
        Once: "once",
        /// Once for each shard that succeeds, as in XXL-JOB.
        Each: "each",
    }
}
