-- Index of failed runs, with the columns that filters use.
CREATE TABLE IF NOT EXISTS tw_failed (
    id BIGINT NOT NULL PRIMARY KEY,
    job_group BIGINT NOT NULL,
    job_id BIGINT NOT NULL,
    trigger_time TIMESTAMP
);

CREATE INDEX IF NOT EXISTS tw_failed_job ON tw_failed (job_id, id);

CREATE INDEX IF NOT EXISTS tw_failed_time ON tw_failed (trigger_time);

INSERT INTO tw_failed (id, job_group, job_id, trigger_time)
    SELECT l.id, l.job_group, l.job_id, l.trigger_time FROM xxl_job_log l
    WHERE l.handle_code <> 200 AND NOT (l.handle_code = 0 AND l.trigger_code IN (0, 200))
    AND NOT EXISTS (SELECT 1 FROM tw_failed f WHERE f.id = l.id);
