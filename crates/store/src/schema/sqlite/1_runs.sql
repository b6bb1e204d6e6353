-- Our tables for nodes, jobs and runs, beside XXL-JOB's.

-- Incarnations of nodes. One with `depends` sends nothing once its lifeline is broken.
CREATE TABLE IF NOT EXISTS tw_node (
    name VARCHAR(190) NOT NULL,
    epoch INTEGER NOT NULL,
    lease_until_ms INTEGER NOT NULL,
    fenced INTEGER NOT NULL DEFAULT 0,
    lifeline INTEGER,
    depends INTEGER NOT NULL DEFAULT 0,
    joined_ms INTEGER NOT NULL,
    version_text VARCHAR(64) NOT NULL DEFAULT '',
    -- Number of the last heartbeat. A node that finds an older one knows that commits were lost.
    beats INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (name, epoch)
) WITHOUT ROWID;

-- Indexed copy of a job's next fire time, and the properties that XXL-JOB's columns cannot hold.
CREATE TABLE IF NOT EXISTS tw_job (
    job_id INTEGER PRIMARY KEY,
    job_key VARCHAR(190) UNIQUE,
    next_ms INTEGER,
    claim_ms INTEGER,
    zone VARCHAR(64),
    dst_rule VARCHAR(64),
    anchor_ms INTEGER,
    schedule_kind VARCHAR(32),
    schedule_text TEXT,
    -- Schedule in XXL-JOB's columns when this row was written, to find edits by other programs.
    written VARCHAR(255),
    -- Scheduled times that a Java admin had taken ahead when the job was last changed, separated by commas.
    taken TEXT,
    valid_from_ms INTEGER,
    valid_until_ms INTEGER,
    -- Maximum number of fires, and the number of fires that count for it.
    max_fires INTEGER,
    fires INTEGER NOT NULL DEFAULT 0,
    jitter_ms INTEGER NOT NULL DEFAULT 0,
    timeout_ms INTEGER,
    misfire VARCHAR(64),
    overlap VARCHAR(64),
    retry VARCHAR(128),
    delivery VARCHAR(64),
    children_mode VARCHAR(16),
    alert INTEGER NOT NULL DEFAULT 0,
    problem TEXT,
    -- Definition in tw_workflow, if a run of the job is a workflow run.
    workflow_id INTEGER,
    -- Work calendar in tw_work_calendar, its revision when the next fire was computed, and the rule for its days.
    calendar_id INTEGER,
    calendar_revision INTEGER,
    on_days VARCHAR(16),
    day_shift VARCHAR(16),
    revision INTEGER NOT NULL DEFAULT 0,
    -- Changed instead of only locked on clusters of several writers.
    guard INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX IF NOT EXISTS tw_job_claim ON tw_job (claim_ms, job_id);

CREATE INDEX IF NOT EXISTS tw_job_calendar ON tw_job (calendar_id);

-- Open runs: a row is deleted when its run has finished.
CREATE TABLE IF NOT EXISTS tw_run (
    run_id INTEGER PRIMARY KEY,
    fire_id INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    scheduled_ms INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    cause INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    shards INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    retry_of INTEGER,
    depth INTEGER NOT NULL DEFAULT 0,
    state INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 0,
    node VARCHAR(190),
    epoch INTEGER,
    due_ms INTEGER NOT NULL,
    check_ms INTEGER NOT NULL,
    doubt_ms INTEGER,
    recalled INTEGER NOT NULL DEFAULT 0,
    address VARCHAR(255),
    param TEXT,
    UNIQUE (job_id, scheduled_ms, kind, cause, shard, attempt)
);

CREATE INDEX IF NOT EXISTS tw_run_check ON tw_run (state, check_ms);

CREATE TABLE IF NOT EXISTS tw_broadcast (
    fire_id INTEGER PRIMARY KEY,
    open INTEGER NOT NULL,
    failed INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS tw_history (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id INTEGER NOT NULL,
    disposition INTEGER NOT NULL,
    first_ms INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    count INTEGER NOT NULL,
    reason TEXT NOT NULL,
    run_id INTEGER,
    fire_id INTEGER,
    at_ms INTEGER NOT NULL,
    superseded INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX IF NOT EXISTS tw_history_job ON tw_history (job_id);

CREATE INDEX IF NOT EXISTS tw_history_run ON tw_history (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE IF NOT EXISTS tw_trigger (
    job_id INTEGER NOT NULL,
    trigger_key INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (job_id, trigger_key)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS tw_pending_alert (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind VARCHAR(16) NOT NULL,
    job_id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    message TEXT NOT NULL,
    due_ms INTEGER NOT NULL,
    leased_until_ms INTEGER NOT NULL DEFAULT 0,
    tries INTEGER NOT NULL DEFAULT 0
);
