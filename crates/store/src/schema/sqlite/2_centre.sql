-- Tables of the scheduling centre other than jobs and runs.

-- Counters. A transaction that increments one locks it until it commits.
CREATE TABLE IF NOT EXISTS tw_counter (
    name VARCHAR(64) NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS tw_setting (
    name VARCHAR(190) NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Tokens of executors. A token without an app is valid for all apps.
CREATE TABLE IF NOT EXISTS tw_token (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    app_id INTEGER,
    digest VARCHAR(64) NOT NULL,
    sealed TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER
);

-- Logs of finished runs, in parts.
CREATE TABLE IF NOT EXISTS tw_run_log (
    run_id INTEGER NOT NULL,
    part INTEGER NOT NULL,
    complete INTEGER NOT NULL,
    kept_ms INTEGER NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (run_id, part)
);

CREATE INDEX IF NOT EXISTS tw_run_log_kept ON tw_run_log (kept_ms);

-- Properties of a user that XXL-JOB's table cannot hold. The hash is valid while XXL-JOB's password is `legacy_of`.
CREATE TABLE IF NOT EXISTS tw_user (
    user_id INTEGER PRIMARY KEY,
    password_hash VARCHAR(255),
    legacy_of VARCHAR(255),
    disabled INTEGER NOT NULL DEFAULT 0,
    changed_ms INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS tw_grant (
    user_id INTEGER NOT NULL,
    app_id INTEGER NOT NULL,
    rights INTEGER NOT NULL,
    PRIMARY KEY (user_id, app_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS tw_grant_app ON tw_grant (app_id);

CREATE TABLE IF NOT EXISTS tw_session (
    digest VARCHAR(64) NOT NULL PRIMARY KEY,
    user_id INTEGER NOT NULL,
    csrf VARCHAR(190) NOT NULL,
    created_ms INTEGER NOT NULL,
    seen_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    address VARCHAR(190) NOT NULL,
    agent VARCHAR(255) NOT NULL
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS tw_session_user ON tw_session (user_id);

CREATE INDEX IF NOT EXISTS tw_session_seen ON tw_session (seen_ms);

CREATE TABLE IF NOT EXISTS tw_api_key (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL,
    name VARCHAR(190) NOT NULL,
    digest VARCHAR(64) NOT NULL UNIQUE,
    apps TEXT,
    rights INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    used_ms INTEGER
);

CREATE INDEX IF NOT EXISTS tw_api_key_user ON tw_api_key (user_id);

-- Append-only: numbered without gaps, each row with the hash of the previous one.
CREATE TABLE IF NOT EXISTS tw_audit (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    principal VARCHAR(190) NOT NULL,
    plane VARCHAR(32) NOT NULL,
    ip VARCHAR(64) NOT NULL,
    action VARCHAR(190) NOT NULL,
    object VARCHAR(190) NOT NULL,
    before_text TEXT,
    after_text TEXT,
    result VARCHAR(190) NOT NULL,
    prev_hash VARCHAR(64) NOT NULL,
    hash VARCHAR(64) NOT NULL
);

CREATE INDEX IF NOT EXISTS tw_audit_principal ON tw_audit (principal);

CREATE INDEX IF NOT EXISTS tw_audit_object ON tw_audit (object);

CREATE INDEX IF NOT EXISTS tw_audit_at ON tw_audit (at_ms);

-- Work calendars: weekdays as bits, the lowest is Monday. Dates are numbers such as 20261001.
CREATE TABLE IF NOT EXISTS tw_work_calendar (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name VARCHAR(100) NOT NULL,
    week INTEGER NOT NULL,
    known_until INTEGER,
    beyond VARCHAR(16) NOT NULL,
    -- Incremented by each change; the jobs with this calendar are then planned again.
    revision INTEGER NOT NULL,
    UNIQUE (name)
);

CREATE TABLE IF NOT EXISTS tw_work_calendar_day (
    calendar_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    is_work INTEGER NOT NULL,
    name VARCHAR(400) NOT NULL,
    PRIMARY KEY (calendar_id, day)
) WITHOUT ROWID;
