-- Runs that resume a workflow run that has ended. A run is resumed at most once: the next one resumes its successor.
CREATE TABLE IF NOT EXISTS tw_resume (
    run_id INTEGER NOT NULL PRIMARY KEY,
    -- The run that is resumed.
    of_run INTEGER NOT NULL UNIQUE,
    -- Definition that the run uses.
    workflow_id INTEGER NOT NULL,
    -- Attempt number, over all runs of the chain.
    attempt INTEGER NOT NULL,
    -- Inputs of the run that is resumed, as a JSON object.
    inputs TEXT NOT NULL,
    at_ms INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS tw_resume_at ON tw_resume (at_ms);

-- Steps that a resumed run keeps: they have succeeded before it begins.
CREATE TABLE IF NOT EXISTS tw_kept_step (
    run_id INTEGER NOT NULL,
    step INTEGER NOT NULL,
    -- Number of the step in the run that is resumed; none if a user has set its output.
    of_step INTEGER,
    PRIMARY KEY (run_id, step)
) WITHOUT ROWID;

-- Users who started workflow runs, by the first run of the fire. Runs of a schedule have none.
CREATE TABLE IF NOT EXISTS tw_run_starter (
    run_id INTEGER NOT NULL PRIMARY KEY,
    user_name VARCHAR(190) NOT NULL,
    at_ms INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS tw_run_starter_at ON tw_run_starter (at_ms);
