-- SHA-256 of the token that an executor registered with, by its row in `xxl_job_registry`.
CREATE TABLE IF NOT EXISTS tw_executor_token (
    registry_id INTEGER NOT NULL PRIMARY KEY,
    digest TEXT NOT NULL
);
