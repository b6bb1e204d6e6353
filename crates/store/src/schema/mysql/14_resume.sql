-- Runs that resume a workflow run that has ended. A run is resumed at most once: the next one resumes its successor.
CREATE TABLE IF NOT EXISTS tw_resume (
    run_id BIGINT NOT NULL PRIMARY KEY,
    -- The run that is resumed.
    of_run BIGINT NOT NULL UNIQUE,
    -- Definition that the run uses.
    workflow_id BIGINT NOT NULL,
    -- Attempt number, over all runs of the chain.
    attempt BIGINT NOT NULL,
    -- Inputs of the run that is resumed, as a JSON object.
    inputs MEDIUMTEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    KEY tw_resume_at (at_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Steps that a resumed run keeps: they have succeeded before it begins.
CREATE TABLE IF NOT EXISTS tw_kept_step (
    run_id BIGINT NOT NULL,
    step BIGINT NOT NULL,
    -- Number of the step in the run that is resumed; none if a user has set its output.
    of_step BIGINT,
    PRIMARY KEY (run_id, step)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Users who started workflow runs, by the first run of the fire. Runs of a schedule have none.
CREATE TABLE IF NOT EXISTS tw_run_starter (
    run_id BIGINT NOT NULL PRIMARY KEY,
    user_name VARCHAR(190) NOT NULL,
    at_ms BIGINT NOT NULL,
    KEY tw_run_starter_at (at_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
