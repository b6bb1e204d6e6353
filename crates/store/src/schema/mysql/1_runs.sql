-- Our tables for nodes, jobs and runs, beside XXL-JOB's.

-- Incarnations of nodes. One with `depends` sends nothing once its lifeline is broken.
CREATE TABLE IF NOT EXISTS tw_node (
    name VARCHAR(190) NOT NULL,
    epoch BIGINT NOT NULL,
    lease_until_ms BIGINT NOT NULL,
    fenced TINYINT NOT NULL DEFAULT 0,
    lifeline BIGINT,
    depends TINYINT NOT NULL DEFAULT 0,
    joined_ms BIGINT NOT NULL,
    version_text VARCHAR(64) NOT NULL DEFAULT '',
    -- Number of the last heartbeat. A node that finds an older one knows that commits were lost.
    beats BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (name, epoch)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Indexed copy of a job's next fire time, and the properties that XXL-JOB's columns cannot hold.
CREATE TABLE IF NOT EXISTS tw_job (
    job_id BIGINT NOT NULL PRIMARY KEY,
    job_key VARCHAR(190),
    next_ms BIGINT,
    claim_ms BIGINT,
    zone VARCHAR(64),
    dst_rule VARCHAR(64),
    anchor_ms BIGINT,
    schedule_kind VARCHAR(32),
    schedule_text TEXT,
    -- Schedule in XXL-JOB's columns when this row was written, to find edits by other programs.
    written VARCHAR(255),
    -- Scheduled times that a Java admin had taken ahead when the job was last changed, separated by commas.
    taken TEXT,
    valid_from_ms BIGINT,
    valid_until_ms BIGINT,
    -- Maximum number of fires, and the number of fires that count for it.
    max_fires BIGINT,
    fires BIGINT NOT NULL DEFAULT 0,
    jitter_ms BIGINT NOT NULL DEFAULT 0,
    timeout_ms BIGINT,
    misfire VARCHAR(64),
    overlap VARCHAR(64),
    retry VARCHAR(128),
    delivery VARCHAR(64),
    children_mode VARCHAR(16),
    alert TINYINT NOT NULL DEFAULT 0,
    problem TEXT,
    -- Definition in tw_workflow, if a run of the job is a workflow run.
    workflow_id BIGINT,
    -- Work calendar in tw_work_calendar, its revision when the next fire was computed, and the rule for its days.
    calendar_id BIGINT,
    calendar_revision BIGINT,
    on_days VARCHAR(16),
    day_shift VARCHAR(16),
    revision BIGINT NOT NULL DEFAULT 0,
    -- Changed instead of only locked on clusters of several writers.
    guard BIGINT NOT NULL DEFAULT 0,
    UNIQUE KEY tw_job_key (job_key),
    KEY tw_job_claim (claim_ms, job_id),
    KEY tw_job_calendar (calendar_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Open runs: a row is deleted when its run has finished.
CREATE TABLE IF NOT EXISTS tw_run (
    run_id BIGINT NOT NULL PRIMARY KEY,
    fire_id BIGINT NOT NULL,
    job_id BIGINT NOT NULL,
    scheduled_ms BIGINT NOT NULL,
    kind TINYINT NOT NULL,
    cause BIGINT NOT NULL,
    shard INT NOT NULL,
    shards INT NOT NULL,
    attempt INT NOT NULL,
    retry_of BIGINT,
    depth INT NOT NULL DEFAULT 0,
    state TINYINT NOT NULL,
    version BIGINT NOT NULL DEFAULT 0,
    node VARCHAR(190),
    epoch BIGINT,
    due_ms BIGINT NOT NULL,
    check_ms BIGINT NOT NULL,
    doubt_ms BIGINT,
    recalled TINYINT NOT NULL DEFAULT 0,
    address VARCHAR(255),
    param MEDIUMTEXT,
    UNIQUE KEY tw_run_once (job_id, scheduled_ms, kind, cause, shard, attempt),
    KEY tw_run_check (state, check_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tw_broadcast (
    fire_id BIGINT NOT NULL PRIMARY KEY,
    open INT NOT NULL,
    failed INT NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tw_history (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_id BIGINT NOT NULL,
    disposition TINYINT NOT NULL,
    first_ms BIGINT NOT NULL,
    last_ms BIGINT NOT NULL,
    count BIGINT NOT NULL,
    reason TEXT NOT NULL,
    run_id BIGINT,
    fire_id BIGINT,
    at_ms BIGINT NOT NULL,
    superseded TINYINT NOT NULL DEFAULT 0,
    KEY tw_history_job (job_id),
    KEY tw_history_run (run_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tw_trigger (
    job_id BIGINT NOT NULL,
    trigger_key BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (job_id, trigger_key)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tw_pending_alert (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    kind VARCHAR(16) NOT NULL,
    job_id BIGINT NOT NULL,
    run_id BIGINT NOT NULL,
    message TEXT NOT NULL,
    due_ms BIGINT NOT NULL,
    leased_until_ms BIGINT NOT NULL DEFAULT 0,
    tries INT NOT NULL DEFAULT 0
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
