-- Tables of the scheduling centre other than jobs and runs.

-- Counters. A transaction that increments one locks it until it commits.
CREATE TABLE IF NOT EXISTS tw_counter (
    name VARCHAR(64) NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tw_setting (
    name VARCHAR(190) NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Tokens of executors. A token without an app is valid for all apps.
CREATE TABLE IF NOT EXISTS tw_token (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    app_id BIGINT,
    digest VARCHAR(64) NOT NULL,
    sealed TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Logs of finished runs, in parts.
CREATE TABLE IF NOT EXISTS tw_run_log (
    run_id BIGINT NOT NULL,
    part INT NOT NULL,
    complete TINYINT NOT NULL,
    kept_ms BIGINT NOT NULL,
    content MEDIUMTEXT NOT NULL,
    PRIMARY KEY (run_id, part),
    KEY tw_run_log_kept (kept_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Properties of a user that XXL-JOB's table cannot hold. The hash is valid while XXL-JOB's password is `legacy_of`.
CREATE TABLE IF NOT EXISTS tw_user (
    user_id BIGINT NOT NULL PRIMARY KEY,
    password_hash VARCHAR(255),
    legacy_of VARCHAR(255),
    disabled TINYINT NOT NULL DEFAULT 0,
    changed_ms BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tw_grant (
    user_id BIGINT NOT NULL,
    app_id BIGINT NOT NULL,
    rights INT NOT NULL,
    PRIMARY KEY (user_id, app_id),
    KEY tw_grant_app (app_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tw_session (
    digest VARCHAR(64) NOT NULL PRIMARY KEY,
    user_id BIGINT NOT NULL,
    csrf VARCHAR(190) NOT NULL,
    created_ms BIGINT NOT NULL,
    seen_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL,
    address VARCHAR(190) NOT NULL,
    agent VARCHAR(255) NOT NULL,
    KEY tw_session_user (user_id),
    KEY tw_session_seen (seen_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tw_api_key (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    name VARCHAR(190) NOT NULL,
    digest VARCHAR(64) NOT NULL,
    apps TEXT,
    rights INT NOT NULL,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT,
    used_ms BIGINT,
    UNIQUE KEY tw_api_key_digest (digest),
    KEY tw_api_key_user (user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Append-only: numbered without gaps, each row with the hash of the previous one.
CREATE TABLE IF NOT EXISTS tw_audit (
    id BIGINT NOT NULL PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    principal VARCHAR(190) NOT NULL,
    plane VARCHAR(32) NOT NULL,
    ip VARCHAR(64) NOT NULL,
    action VARCHAR(190) NOT NULL,
    object VARCHAR(190) NOT NULL,
    before_text MEDIUMTEXT,
    after_text MEDIUMTEXT,
    result VARCHAR(190) NOT NULL,
    prev_hash VARCHAR(64) NOT NULL,
    hash VARCHAR(64) NOT NULL,
    KEY tw_audit_principal (principal),
    KEY tw_audit_object (object),
    KEY tw_audit_at (at_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Work calendars: weekdays as bits, the lowest is Monday. Dates are numbers such as 20261001.
CREATE TABLE IF NOT EXISTS tw_work_calendar (
    id BIGINT NOT NULL AUTO_INCREMENT,
    name VARCHAR(100) NOT NULL,
    week INT NOT NULL,
    known_until BIGINT,
    beyond VARCHAR(16) NOT NULL,
    -- Incremented by each change; the jobs with this calendar are then planned again.
    revision BIGINT NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY tw_work_calendar_name (name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS tw_work_calendar_day (
    calendar_id BIGINT NOT NULL,
    day BIGINT NOT NULL,
    is_work INT NOT NULL,
    name VARCHAR(400) NOT NULL,
    PRIMARY KEY (calendar_id, day)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
