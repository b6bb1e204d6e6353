-- Alerts, from when they arise until they are old. While one is to be told, its row in tw_outbox is named here.
CREATE TABLE IF NOT EXISTS tw_alert (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    outbox_id INTEGER,
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

CREATE INDEX IF NOT EXISTS tw_alert_outbox ON tw_alert (outbox_id);

CREATE INDEX IF NOT EXISTS tw_alert_job ON tw_alert (job_id, joins_until_ms);

CREATE INDEX IF NOT EXISTS tw_alert_app ON tw_alert (app_id);

CREATE INDEX IF NOT EXISTS tw_alert_at ON tw_alert (at_ms);

-- Who was told of an alert, or could not be.
CREATE TABLE IF NOT EXISTS tw_delivery (
    alert_id INTEGER NOT NULL,
    part INTEGER NOT NULL,
    channel VARCHAR(16) NOT NULL,
    told VARCHAR(190) NOT NULL,
    at_ms INTEGER NOT NULL,
    trouble TEXT,
    PRIMARY KEY (alert_id, part)
) WITHOUT ROWID;

-- What a node knows of a run's way: the steps between its instant and its end.
CREATE TABLE IF NOT EXISTS tw_flight (
    log_id INTEGER NOT NULL,
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
    PRIMARY KEY (log_id, node)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS tw_flight_saved ON tw_flight (saved_ms);
