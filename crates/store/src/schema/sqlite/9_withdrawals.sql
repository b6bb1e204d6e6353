-- Stopped or deleted jobs with open runs that are still being withdrawn, a batch per transaction.
CREATE TABLE IF NOT EXISTS tw_withdrawal (
    job_id INTEGER NOT NULL PRIMARY KEY,
    scheduled_only INTEGER NOT NULL,
    at_ms INTEGER NOT NULL
);
