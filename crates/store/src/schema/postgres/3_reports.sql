-- Number of runs per day and app: XXL-JOB's report has only totals.
CREATE TABLE IF NOT EXISTS tw_report (
    day VARCHAR(10) NOT NULL,
    app_id BIGINT NOT NULL,
    running BIGINT NOT NULL,
    succeeded BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    PRIMARY KEY (day, app_id)
);
