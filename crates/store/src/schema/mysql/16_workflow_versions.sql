-- Versions of the workflow of a job, each saved definition one. Only the newest are kept.
CREATE TABLE IF NOT EXISTS tw_workflow_version (
    job_id BIGINT NOT NULL,
    -- Number of the version, from 1.
    version INT NOT NULL,
    workflow_id BIGINT NOT NULL,
    author VARCHAR(190) NOT NULL,
    remark VARCHAR(512) NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (job_id, version),
    KEY tw_workflow_version_workflow (workflow_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
