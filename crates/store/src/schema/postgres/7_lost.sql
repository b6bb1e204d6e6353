-- What a late result of a lost run has to know of it: the row it had while it was open is gone by then.
CREATE TABLE IF NOT EXISTS tw_lost (
    run_id BIGINT NOT NULL PRIMARY KEY,
    kind BIGINT NOT NULL,
    cause BIGINT NOT NULL,
    depth BIGINT NOT NULL
);
