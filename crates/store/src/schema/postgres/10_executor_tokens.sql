-- Which token each executor knows, by its SHA-256: beside the rows of `xxl_job_registry`.
CREATE TABLE IF NOT EXISTS tw_executor_token (
    registry_id BIGINT NOT NULL PRIMARY KEY,
    digest VARCHAR(64) NOT NULL
);
