-- Backfills: a transaction that changes one, or its scheduled times, locks its row first.
CREATE TABLE IF NOT EXISTS tw_backfill (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_id BIGINT NOT NULL,
    -- Idempotency key of the request.
    request_key BIGINT NOT NULL,
    from_ms BIGINT NOT NULL,
    until_ms BIGINT NOT NULL,
    fill_order VARCHAR(16) NOT NULL,
    at_once BIGINT NOT NULL,
    existing VARCHAR(16) NOT NULL,
    on_failure VARCHAR(16) NOT NULL,
    -- Parameter instead of the job's.
    param MEDIUMTEXT,
    author VARCHAR(190) NOT NULL,
    state VARCHAR(16) NOT NULL,
    total BIGINT NOT NULL,
    open BIGINT NOT NULL,
    succeeded BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    cancelled BIGINT NOT NULL,
    begun_ms BIGINT NOT NULL,
    ended_ms BIGINT,
    UNIQUE KEY tw_backfill_once (job_id, request_key),
    KEY tw_backfill_ended (ended_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Scheduled times of backfills.
CREATE TABLE IF NOT EXISTS tw_backfill_time (
    backfill_id BIGINT NOT NULL,
    scheduled_ms BIGINT NOT NULL,
    state VARCHAR(16) NOT NULL,
    -- First run that was opened for it.
    fire_id BIGINT,
    -- Run that ended it.
    run_id BIGINT,
    ended_ms BIGINT,
    -- Reason of a failure, or why it was left out.
    message MEDIUMTEXT,
    PRIMARY KEY (backfill_id, scheduled_ms),
    KEY tw_backfill_time_state (backfill_id, state, scheduled_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What has happened to backfills and is not applied to them yet: an end of a run, or a look at what is next.
CREATE TABLE IF NOT EXISTS tw_backfill_event (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    backfill_id BIGINT NOT NULL,
    due_ms BIGINT NOT NULL,
    scheduled_ms BIGINT,
    fire_id BIGINT,
    run_id BIGINT,
    state VARCHAR(16),
    message MEDIUMTEXT,
    KEY tw_backfill_event_due (due_ms),
    KEY tw_backfill_event_of (backfill_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
