-- XXL-JOB's tables as its release 3.4 has them, for a new database: a Java admin could work with them.

CREATE TABLE IF NOT EXISTS xxl_job_info (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_group INT NOT NULL,
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
    executor_timeout INT NOT NULL DEFAULT 0,
    executor_fail_retry_count INT NOT NULL DEFAULT 0,
    glue_type VARCHAR(50) NOT NULL,
    glue_source MEDIUMTEXT,
    glue_remark VARCHAR(128),
    glue_updatetime DATETIME,
    child_jobid VARCHAR(255),
    trigger_status TINYINT NOT NULL DEFAULT 0,
    trigger_last_time BIGINT NOT NULL DEFAULT 0,
    trigger_next_time BIGINT NOT NULL DEFAULT 0
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE IF NOT EXISTS xxl_job_log (
    -- Never given twice, also after pruning: executors know runs by it.
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_group INT NOT NULL,
    job_id INT NOT NULL,
    executor_address VARCHAR(255),
    executor_handler VARCHAR(255),
    executor_param TEXT,
    executor_sharding_param VARCHAR(20),
    executor_fail_retry_count INT NOT NULL DEFAULT 0,
    trigger_time DATETIME,
    trigger_code INT NOT NULL,
    trigger_msg TEXT,
    handle_time DATETIME,
    handle_code INT NOT NULL,
    handle_msg TEXT,
    alarm_status TINYINT NOT NULL DEFAULT 0,
    KEY I_trigger_time (trigger_time),
    KEY I_handle_code (handle_code),
    KEY I_jobgroup (job_group),
    KEY I_jobid (job_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE IF NOT EXISTS xxl_job_log_report (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    trigger_day DATETIME,
    running_count INT NOT NULL DEFAULT 0,
    suc_count INT NOT NULL DEFAULT 0,
    fail_count INT NOT NULL DEFAULT 0,
    update_time DATETIME,
    UNIQUE KEY i_trigger_day (trigger_day)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE IF NOT EXISTS xxl_job_logglue (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    job_id INT NOT NULL,
    glue_type VARCHAR(50),
    glue_source MEDIUMTEXT,
    glue_remark VARCHAR(128) NOT NULL,
    add_time DATETIME,
    update_time DATETIME
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE IF NOT EXISTS xxl_job_registry (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    registry_group VARCHAR(50) NOT NULL,
    registry_key VARCHAR(255) NOT NULL,
    registry_value VARCHAR(255) NOT NULL,
    update_time DATETIME,
    UNIQUE KEY i_g_k_v (registry_group, registry_key, registry_value)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE IF NOT EXISTS xxl_job_group (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    app_name VARCHAR(64) NOT NULL,
    title VARCHAR(64) NOT NULL,
    address_type TINYINT NOT NULL DEFAULT 0,
    address_list TEXT,
    update_time DATETIME
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE IF NOT EXISTS xxl_job_user (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    username VARCHAR(50) NOT NULL,
    password VARCHAR(100) NOT NULL,
    token VARCHAR(100),
    role TINYINT NOT NULL,
    permission VARCHAR(255),
    UNIQUE KEY i_username (username)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE IF NOT EXISTS xxl_job_lock (
    lock_name VARCHAR(50) NOT NULL PRIMARY KEY
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;
