-- Definitions of workflows, as JSON. A definition never changes: each version of a workflow has a row of its own.
CREATE TABLE IF NOT EXISTS tw_workflow (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    body TEXT NOT NULL,
    -- Digest of the body, to find an equal definition.
    digest VARCHAR(64) NOT NULL,
    steps INTEGER NOT NULL,
    author VARCHAR(190) NOT NULL DEFAULT '',
    at_ms INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS tw_workflow_digest ON tw_workflow (digest);

-- Workflow runs: a transaction that changes one, or its steps, locks its row first.
CREATE TABLE IF NOT EXISTS tw_workflow_run (
    run_id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    scheduled_ms INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    day VARCHAR(10) NOT NULL,
    inputs TEXT NOT NULL,
    phase INTEGER NOT NULL,
    open INTEGER NOT NULL,
    active INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    finally_failed INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    begun_ms INTEGER NOT NULL,
    deadline_ms INTEGER,
    ended_ms INTEGER,
    outcome INTEGER,
    message TEXT
);

CREATE INDEX IF NOT EXISTS tw_workflow_run_begun ON tw_workflow_run (begun_ms);

-- Steps of workflow runs.
CREATE TABLE IF NOT EXISTS tw_step (
    run_id INTEGER NOT NULL,
    step INTEGER NOT NULL,
    state INTEGER NOT NULL,
    waits INTEGER NOT NULL,
    taken INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    -- First run of the step, if it runs a job.
    fire_id INTEGER,
    -- Job of that run.
    job_id INTEGER,
    -- When it ends by itself: the end of a wait, or a timeout.
    due_ms INTEGER,
    opened_ms INTEGER,
    ended_ms INTEGER,
    -- Question of an approval, or reason of a failure.
    message TEXT,
    PRIMARY KEY (run_id, step)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS tw_step_output (
    run_id INTEGER NOT NULL,
    step INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run_id, step)
) WITHOUT ROWID;

-- Decisions about steps that ask people.
CREATE TABLE IF NOT EXISTS tw_decision (
    run_id INTEGER NOT NULL,
    step INTEGER NOT NULL,
    approved INTEGER NOT NULL,
    user_name VARCHAR(190) NOT NULL,
    remark TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (run_id, step)
) WITHOUT ROWID;

-- What has happened to workflow runs and is not applied to them yet.
CREATE TABLE IF NOT EXISTS tw_workflow_event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    step INTEGER,
    body TEXT,
    at_ms INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS tw_workflow_event_run ON tw_workflow_event (run_id);

-- Steps that wait for runs of other jobs, by the range of scheduled times.
CREATE TABLE IF NOT EXISTS tw_dependency (
    run_id INTEGER NOT NULL,
    step INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    from_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (run_id, step)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS tw_dependency_job ON tw_dependency (job_id);

-- Secrets of apps, encrypted with the cluster's key.
CREATE TABLE IF NOT EXISTS tw_secret (
    app_id INTEGER NOT NULL,
    name VARCHAR(64) NOT NULL,
    sealed TEXT NOT NULL,
    author VARCHAR(190) NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (app_id, name)
);
