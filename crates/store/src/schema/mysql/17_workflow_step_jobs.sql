-- Jobs of steps that a definition names, to delete them with the last definition. The job 0 means that the list is complete.
CREATE TABLE IF NOT EXISTS tw_workflow_step_job (
    workflow_id BIGINT NOT NULL,
    job_id BIGINT NOT NULL,
    PRIMARY KEY (workflow_id, job_id),
    KEY tw_workflow_step_job_job (job_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
