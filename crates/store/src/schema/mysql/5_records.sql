-- All alerts, until they expire. `pending_id` is the row in tw_pending_alert while the alert is to be delivered.
CREATE TABLE IF NOT EXISTS tw_alert (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    pending_id BIGINT,
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
    KEY tw_alert_pending (pending_id),
    KEY tw_alert_job (job_id, joins_until_ms),
    KEY tw_alert_app (app_id),
    KEY tw_alert_at (at_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Notifications of an alert, one per recipient.
CREATE TABLE IF NOT EXISTS tw_delivery (
    alert_id BIGINT NOT NULL,
    part INT NOT NULL,
    channel VARCHAR(16) NOT NULL,
    recipient VARCHAR(190) NOT NULL,
    at_ms BIGINT NOT NULL,
    trouble TEXT,
    PRIMARY KEY (alert_id, part)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- Traces of runs: the time of each step, one row per node that was involved.
CREATE TABLE IF NOT EXISTS tw_trace (
    run_id BIGINT NOT NULL,
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
    PRIMARY KEY (run_id, node),
    KEY tw_trace_saved (saved_ms)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
