-- Jobs that belong to steps of workflows which name a handler or script themselves. They are in no list of jobs.
CREATE TABLE IF NOT EXISTS tw_step_job (
    job_id BIGINT NOT NULL PRIMARY KEY,
    -- Digest of the definition: equal ones share a job.
    digest VARCHAR(64) NOT NULL,
    UNIQUE KEY tw_step_job_digest (digest)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
