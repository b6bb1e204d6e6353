-- What programs say of their jobs, so that what people change since can be told from it.
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

-- Which handlers executors say they have: beside their rows in `xxl_job_registry`, one name in each line.
CREATE TABLE IF NOT EXISTS tw_executor (
    registry_id INTEGER NOT NULL PRIMARY KEY,
    handlers TEXT NOT NULL
);
