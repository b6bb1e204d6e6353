-- Index of failed runs, with the columns that filters use.
CREATE TABLE IF NOT EXISTS tw_failed (
    id BIGINT NOT NULL PRIMARY KEY,
    job_group BIGINT NOT NULL,
    job_id BIGINT NOT NULL,
    trigger_time DATETIME,
    KEY tw_failed_job (job_id),
    KEY tw_failed_time (trigger_time)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
