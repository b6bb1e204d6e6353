-- Jobs that are stopped or deleted and whose open runs are still being withdrawn, some at a time.
CREATE TABLE IF NOT EXISTS tw_withdrawal (
    job_id INTEGER NOT NULL PRIMARY KEY,
    scheduled_only INTEGER NOT NULL,
    at_ms INTEGER NOT NULL
);
