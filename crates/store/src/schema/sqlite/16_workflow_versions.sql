-- Versions of the workflow of a job, each saved definition one. Only the newest are kept.
CREATE TABLE IF NOT EXISTS tw_workflow_version (
    job_id INTEGER NOT NULL,
    -- Number of the version, from 1.
    version INTEGER NOT NULL,
    workflow_id INTEGER NOT NULL,
    author VARCHAR(190) NOT NULL,
    remark VARCHAR(512) NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (job_id, version)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS tw_workflow_version_workflow ON tw_workflow_version (workflow_id);
