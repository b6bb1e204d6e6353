-- Declarations of jobs by programs, to distinguish them from later changes by users.
CREATE TABLE IF NOT EXISTS tw_declaration (
    job_id BIGINT NOT NULL PRIMARY KEY,
    app_id BIGINT NOT NULL,
    handler VARCHAR(180) NOT NULL,
    name TEXT,
    param TEXT,
    timeout_ms BIGINT,
    retries BIGINT,
    route VARCHAR(64),
    schedule_kind VARCHAR(32),
    schedule_text TEXT,
    zone VARCHAR(64),
    dst_rule VARCHAR(64),
    UNIQUE KEY tw_declaration_handler (app_id, handler)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Handlers that an executor offers, one name per line, by its row in `xxl_job_registry`.
CREATE TABLE IF NOT EXISTS tw_executor_handlers (
    registry_id BIGINT NOT NULL PRIMARY KEY,
    handlers TEXT NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
