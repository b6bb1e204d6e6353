-- Tags of jobs.
CREATE TABLE IF NOT EXISTS tw_job_tag (
    job_id BIGINT NOT NULL,
    tag VARCHAR(64) NOT NULL,
    PRIMARY KEY (job_id, tag),
    KEY tw_job_tag_tag (tag)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
