-- Declarations of jobs by programs, to distinguish them from later changes by users.
CREATE TABLE IF NOT EXISTS tw_declaration (
    job_id INTEGER NOT NULL PRIMARY KEY,
    app_id INTEGER NOT NULL,
    handler VARCHAR(180) NOT NULL,
    name TEXT,
    param TEXT,
    timeout_ms INTEGER,
    retries INTEGER,
    route VARCHAR(64),
    schedule_kind VARCHAR(32),
    schedule_text TEXT,
    zone VARCHAR(64),
    dst_rule VARCHAR(64),
    UNIQUE (app_id, handler)
);

-- Handlers that an executor offers, one name per line, by its row in `xxl_job_registry`.
CREATE TABLE IF NOT EXISTS tw_executor_handlers (
    registry_id INTEGER NOT NULL PRIMARY KEY,
    handlers TEXT NOT NULL
);
