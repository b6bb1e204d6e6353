-- Tags of jobs.
CREATE TABLE IF NOT EXISTS tw_job_tag (
    job_id BIGINT NOT NULL,
    tag VARCHAR(64) NOT NULL,
    PRIMARY KEY (job_id, tag)
);

CREATE INDEX IF NOT EXISTS tw_job_tag_tag ON tw_job_tag (tag);
