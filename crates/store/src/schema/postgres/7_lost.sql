-- Data of a lost run that a late result needs: the row of the open run is deleted by then.
CREATE TABLE IF NOT EXISTS tw_lost (
    run_id BIGINT NOT NULL PRIMARY KEY,
    kind BIGINT NOT NULL,
    cause BIGINT NOT NULL,
    depth BIGINT NOT NULL
);
