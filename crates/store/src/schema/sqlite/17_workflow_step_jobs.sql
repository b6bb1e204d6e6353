-- Jobs of steps that a definition names, to delete them with the last definition. The job 0 means that the list is complete.
CREATE TABLE IF NOT EXISTS tw_workflow_step_job (
    workflow_id INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    PRIMARY KEY (workflow_id, job_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS tw_workflow_step_job_job ON tw_workflow_step_job (job_id);
