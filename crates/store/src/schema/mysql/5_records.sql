-- Alerts, from when they arise until they are old. While one is to be told, its row in tw_outbox is named here.
CREATE TABLE IF NOT EXISTS tw_alert (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    outbox_id BIGINT,
    kind VARCHAR(16) NOT NULL,
    app_id BIGINT NOT NULL,
    job_id BIGINT NOT NULL,
    run_id BIGINT,
    message TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    last_ms BIGINT NOT NULL,
    count BIGINT NOT NULL,
    earlier BIGINT NOT NULL,
    step INT NOT NULL,
    joins_until_ms BIGINT NOT NULL,
    outcome TINYINT NOT NULL,
    tries INT NOT NULL,
    KEY tw_alert_outbox (outbox_id),
    KEY tw_alert_job (job_id, joins_until_ms),
    KEY tw_alert_app (app_id),
    KEY tw_alert_at (at_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Who was told of an alert, or could not be.
CREATE TABLE IF NOT EXISTS tw_delivery (
    alert_id BIGINT NOT NULL,
    part INT NOT NULL,
    channel VARCHAR(16) NOT NULL,
    told VARCHAR(190) NOT NULL,
    at_ms BIGINT NOT NULL,
    trouble TEXT,
    PRIMARY KEY (alert_id, part)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- What a node knows of a run's way: the steps between its instant and its end.
CREATE TABLE IF NOT EXISTS tw_flight (
    log_id BIGINT NOT NULL,
    node VARCHAR(190) NOT NULL,
    scheduled_ms BIGINT,
    kind TINYINT,
    cause BIGINT,
    attempt INT,
    retry_of BIGINT,
    route VARCHAR(64),
    claimed_ms BIGINT,
    left_ms BIGINT,
    answered_ms BIGINT,
    answer TINYINT,
    address VARCHAR(255),
    reason TEXT,
    reported_ms BIGINT,
    recorded_ms BIGINT,
    saved_ms BIGINT NOT NULL,
    PRIMARY KEY (log_id, node),
    KEY tw_flight_saved (saved_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
