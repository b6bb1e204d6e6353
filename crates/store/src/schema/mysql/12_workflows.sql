-- Definitions of workflows, as JSON. A definition never changes: each version of a workflow has a row of its own.
CREATE TABLE IF NOT EXISTS tw_workflow (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    body MEDIUMTEXT NOT NULL,
    -- Digest of the body, to find an equal definition.
    digest VARCHAR(64) NOT NULL,
    steps BIGINT NOT NULL,
    author VARCHAR(190) NOT NULL DEFAULT '',
    at_ms BIGINT NOT NULL,
    KEY tw_workflow_digest (digest)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Workflow runs: a transaction that changes one, or its steps, locks its row first.
CREATE TABLE IF NOT EXISTS tw_workflow_run (
    run_id BIGINT NOT NULL PRIMARY KEY,
    job_id BIGINT NOT NULL,
    workflow_id BIGINT NOT NULL,
    scheduled_ms BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    depth BIGINT NOT NULL,
    day VARCHAR(10) NOT NULL,
    inputs MEDIUMTEXT NOT NULL,
    phase BIGINT NOT NULL,
    open BIGINT NOT NULL,
    active BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    finally_failed BIGINT NOT NULL,
    stop BIGINT NOT NULL,
    paused BIGINT NOT NULL,
    begun_ms BIGINT NOT NULL,
    deadline_ms BIGINT,
    ended_ms BIGINT,
    outcome BIGINT,
    message MEDIUMTEXT,
    KEY tw_workflow_run_begun (begun_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Steps of workflow runs.
CREATE TABLE IF NOT EXISTS tw_step (
    run_id BIGINT NOT NULL,
    step BIGINT NOT NULL,
    state BIGINT NOT NULL,
    waits BIGINT NOT NULL,
    taken BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    -- First run of the step, if it runs a job.
    fire_id BIGINT,
    -- Job of that run.
    job_id BIGINT,
    -- When it ends by itself: the end of a wait, or a timeout.
    due_ms BIGINT,
    opened_ms BIGINT,
    ended_ms BIGINT,
    -- Question of an approval, or reason of a failure.
    message MEDIUMTEXT,
    PRIMARY KEY (run_id, step)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tw_step_output (
    run_id BIGINT NOT NULL,
    step BIGINT NOT NULL,
    body MEDIUMTEXT NOT NULL,
    PRIMARY KEY (run_id, step)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Decisions about steps that ask people.
CREATE TABLE IF NOT EXISTS tw_decision (
    run_id BIGINT NOT NULL,
    step BIGINT NOT NULL,
    approved BIGINT NOT NULL,
    user_name VARCHAR(190) NOT NULL,
    remark MEDIUMTEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (run_id, step)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What has happened to workflow runs and is not applied to them yet.
CREATE TABLE IF NOT EXISTS tw_workflow_event (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    run_id BIGINT NOT NULL,
    kind BIGINT NOT NULL,
    step BIGINT,
    body MEDIUMTEXT,
    at_ms BIGINT NOT NULL,
    KEY tw_workflow_event_run (run_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Steps that wait for runs of other jobs, by the range of scheduled times.
CREATE TABLE IF NOT EXISTS tw_dependency (
    run_id BIGINT NOT NULL,
    step BIGINT NOT NULL,
    job_id BIGINT NOT NULL,
    from_ms BIGINT NOT NULL,
    until_ms BIGINT NOT NULL,
    PRIMARY KEY (run_id, step),
    KEY tw_dependency_job (job_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Secrets of apps, encrypted with the cluster's key.
CREATE TABLE IF NOT EXISTS tw_secret (
    app_id BIGINT NOT NULL,
    name VARCHAR(64) NOT NULL,
    sealed TEXT NOT NULL,
    author VARCHAR(190) NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (app_id, name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
