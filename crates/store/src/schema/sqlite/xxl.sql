-- XXL-JOB's tables as its release 3.4 has them, for a new database. No Java admin works with this one, so only the
-- indexes that we use are here: each costs every run a write.

CREATE TABLE IF NOT EXISTS xxl_job_info (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_group INTEGER NOT NULL,
    job_desc VARCHAR(255) NOT NULL,
    add_time DATETIME,
    update_time DATETIME,
    author VARCHAR(64),
    alarm_email VARCHAR(255),
    schedule_type VARCHAR(50) NOT NULL DEFAULT 'NONE',
    schedule_conf VARCHAR(128),
    misfire_strategy VARCHAR(50) NOT NULL DEFAULT 'DO_NOTHING',
    executor_route_strategy VARCHAR(50),
    executor_handler VARCHAR(255),
    executor_param TEXT,
    executor_block_strategy VARCHAR(50),
    executor_timeout INTEGER NOT NULL DEFAULT 0,
    executor_fail_retry_count INTEGER NOT NULL DEFAULT 0,
    glue_type VARCHAR(50) NOT NULL,
    glue_source TEXT,
    glue_remark VARCHAR(128),
    glue_updatetime DATETIME,
    child_jobid VARCHAR(255),
    trigger_status INTEGER NOT NULL DEFAULT 0,
    trigger_last_time INTEGER NOT NULL DEFAULT 0,
    trigger_next_time INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS xxl_job_log (
    -- Never given twice, also after pruning: executors know runs by it.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_group INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    executor_address VARCHAR(255),
    executor_handler VARCHAR(255),
    executor_param TEXT,
    executor_sharding_param VARCHAR(20),
    executor_fail_retry_count INTEGER NOT NULL DEFAULT 0,
    trigger_time DATETIME,
    trigger_code INTEGER NOT NULL,
    trigger_msg TEXT,
    handle_time DATETIME,
    handle_code INTEGER NOT NULL,
    handle_msg TEXT,
    alarm_status INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX IF NOT EXISTS xxl_job_log_trigger_time ON xxl_job_log (trigger_time);

CREATE INDEX IF NOT EXISTS xxl_job_log_job_id ON xxl_job_log (job_id);

CREATE TABLE IF NOT EXISTS xxl_job_log_report (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    trigger_day DATETIME UNIQUE,
    running_count INTEGER NOT NULL DEFAULT 0,
    suc_count INTEGER NOT NULL DEFAULT 0,
    fail_count INTEGER NOT NULL DEFAULT 0,
    update_time DATETIME
);

CREATE TABLE IF NOT EXISTS xxl_job_logglue (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id INTEGER NOT NULL,
    glue_type VARCHAR(50),
    glue_source TEXT,
    glue_remark VARCHAR(128) NOT NULL,
    add_time DATETIME,
    update_time DATETIME
);

CREATE TABLE IF NOT EXISTS xxl_job_registry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    registry_group VARCHAR(50) NOT NULL,
    registry_key VARCHAR(255) NOT NULL,
    registry_value VARCHAR(255) NOT NULL,
    update_time DATETIME
);

CREATE UNIQUE INDEX IF NOT EXISTS i_g_k_v ON xxl_job_registry (registry_group, registry_key, registry_value);

CREATE TABLE IF NOT EXISTS xxl_job_group (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    app_name VARCHAR(64) NOT NULL,
    title VARCHAR(64) NOT NULL,
    address_type INTEGER NOT NULL DEFAULT 0,
    address_list TEXT,
    update_time DATETIME
);

CREATE TABLE IF NOT EXISTS xxl_job_user (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    username VARCHAR(50) NOT NULL UNIQUE,
    password VARCHAR(100) NOT NULL,
    token VARCHAR(100),
    role INTEGER NOT NULL,
    permission VARCHAR(255)
);

CREATE TABLE IF NOT EXISTS xxl_job_lock (
    lock_name VARCHAR(50) NOT NULL PRIMARY KEY
);
