-- All alerts, until they expire. `pending_id` is the row in tw_pending_alert while the alert is to be delivered.
CREATE TABLE IF NOT EXISTS tw_alert (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pending_id INTEGER,
    kind VARCHAR(16) NOT NULL,
    app_id INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    run_id INTEGER,
    message TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    count INTEGER NOT NULL,
    earlier INTEGER NOT NULL,
    step INTEGER NOT NULL,
    joins_until_ms INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    tries INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS tw_alert_pending ON tw_alert (pending_id);

CREATE INDEX IF NOT EXISTS tw_alert_job ON tw_alert (job_id, joins_until_ms);

CREATE INDEX IF NOT EXISTS tw_alert_app ON tw_alert (app_id);

CREATE INDEX IF NOT EXISTS tw_alert_at ON tw_alert (at_ms);

-- Notifications of an alert, one per recipient.
CREATE TABLE IF NOT EXISTS tw_delivery (
    alert_id INTEGER NOT NULL,
    part INTEGER NOT NULL,
    channel VARCHAR(16) NOT NULL,
    recipient VARCHAR(190) NOT NULL,
    at_ms INTEGER NOT NULL,
    trouble TEXT,
    PRIMARY KEY (alert_id, part)
) WITHOUT ROWID;

-- Traces of runs: the time of each step, one row per node that was involved.
CREATE TABLE IF NOT EXISTS tw_trace (
    run_id INTEGER NOT NULL,
    node VARCHAR(190) NOT NULL,
    scheduled_ms INTEGER,
    kind INTEGER,
    cause INTEGER,
    attempt INTEGER,
    retry_of INTEGER,
    route VARCHAR(64),
    claimed_ms INTEGER,
    left_ms INTEGER,
    answered_ms INTEGER,
    answer INTEGER,
    address VARCHAR(255),
    reason TEXT,
    reported_ms INTEGER,
    recorded_ms INTEGER,
    saved_ms INTEGER NOT NULL,
    PRIMARY KEY (run_id, node)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS tw_trace_saved ON tw_trace (saved_ms);
