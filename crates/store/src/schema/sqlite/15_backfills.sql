-- Backfills: a transaction that changes one, or its scheduled times, locks its row first.
CREATE TABLE IF NOT EXISTS tw_backfill (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id INTEGER NOT NULL,
    -- Idempotency key of the request.
    request_key INTEGER NOT NULL,
    from_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    fill_order VARCHAR(16) NOT NULL,
    at_once INTEGER NOT NULL,
    existing VARCHAR(16) NOT NULL,
    on_failure VARCHAR(16) NOT NULL,
    -- Parameter instead of the job's.
    param TEXT,
    author VARCHAR(190) NOT NULL,
    state VARCHAR(16) NOT NULL,
    total INTEGER NOT NULL,
    open INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    begun_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    UNIQUE (job_id, request_key)
);

CREATE INDEX IF NOT EXISTS tw_backfill_ended ON tw_backfill (ended_ms);

-- Scheduled times of backfills.
CREATE TABLE IF NOT EXISTS tw_backfill_time (
    backfill_id INTEGER NOT NULL,
    scheduled_ms INTEGER NOT NULL,
    state VARCHAR(16) NOT NULL,
    -- First run that was opened for it.
    fire_id INTEGER,
    -- Run that ended it.
    run_id INTEGER,
    ended_ms INTEGER,
    -- Reason of a failure, or why it was left out.
    message TEXT,
    PRIMARY KEY (backfill_id, scheduled_ms)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS tw_backfill_time_state ON tw_backfill_time (backfill_id, state, scheduled_ms);

-- What has happened to backfills and is not applied to them yet: an end of a run, or a look at what is next.
CREATE TABLE IF NOT EXISTS tw_backfill_event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    backfill_id INTEGER NOT NULL,
    due_ms INTEGER NOT NULL,
    scheduled_ms INTEGER,
    fire_id INTEGER,
    run_id INTEGER,
    state VARCHAR(16),
    message TEXT
);

CREATE INDEX IF NOT EXISTS tw_backfill_event_due ON tw_backfill_event (due_ms);

CREATE INDEX IF NOT EXISTS tw_backfill_event_of ON tw_backfill_event (backfill_id);
