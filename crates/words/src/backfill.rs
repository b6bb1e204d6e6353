//! Words of backfills.

use crate::word::words;

words! {
    "order of a backfill";
    /// Order in which a backfill opens the runs of its scheduled times.
    pub enum BackfillOrder = Oldest {
        /// The oldest scheduled time first.
        Oldest: "oldest",
        /// The newest scheduled time first.
        Newest: "newest",
    }
}

words! {
    "rule for existing runs";
    /// What a backfill does with a scheduled time that already has runs. Under `skip` and `failed` it waits for one
    /// that is still open.
    pub enum Existing = Skip {
        /// Scheduled times with a run that succeeded are left out.
        Skip: "skip",
        /// Every scheduled time runs again.
        Again: "again",
        /// Only scheduled times run whose newest run did not succeed, or that have none.
        Failed: "failed",
    }
}

words! {
    "failure strategy";
    /// What a backfill does when a run fails for good.
    pub enum OnFailure = Continue {
        /// The other scheduled times run all the same.
        Continue: "continue",
        /// The backfill is paused: no more runs are opened until it is continued.
        Stop: "stop",
    }
}

words! {
    "state of a backfill";
    /// State of a backfill.
    pub enum BackfillState {
        /// It opens runs.
        Running: "running",
        /// It opens no runs until it is continued; open ones may end.
        Paused: "paused",
        /// It was cancelled: it opens no more runs; open ones may end.
        Cancelled: "cancelled",
        /// All its scheduled times have ended or were left out.
        Finished: "finished",
    }
}

words! {
    "state of a scheduled time";
    /// State of one scheduled time of a backfill. The last four are final, unless it is retried.
    pub enum InstantState {
        /// Its run is not opened yet.
        Pending: "pending",
        /// It has an open run.
        Open: "open",
        /// Its run succeeded.
        Succeeded: "succeeded",
        /// Its run failed, was rejected or was lost, after all retries of the job.
        Failed: "failed",
        /// It was left out, because of a run that exists.
        Skipped: "skipped",
        /// Its run was cancelled, or the backfill was cancelled first.
        Cancelled: "cancelled",
    }
}
