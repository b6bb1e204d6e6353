-- What a late result of a lost run has to know of it: the row it had while it was open is gone by then.
CREATE TABLE IF NOT EXISTS tw_lost (
    run_id INTEGER NOT NULL PRIMARY KEY,
    kind INTEGER NOT NULL,
    cause INTEGER NOT NULL,
    depth INTEGER NOT NULL
);
