-- Stopped or deleted jobs with open runs that are still being withdrawn, a batch per transaction.
CREATE TABLE IF NOT EXISTS tw_withdrawal (
    job_id BIGINT NOT NULL PRIMARY KEY,
    scheduled_only BIGINT NOT NULL,
    at_ms BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
