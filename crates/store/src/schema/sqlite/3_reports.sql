-- Number of runs per day and app: XXL-JOB's report has only totals.
CREATE TABLE IF NOT EXISTS tw_report (
    day VARCHAR(10) NOT NULL,
    app_id INTEGER NOT NULL,
    running INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    PRIMARY KEY (day, app_id)
) WITHOUT ROWID;
