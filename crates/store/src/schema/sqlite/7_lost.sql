-- Data of a lost run that a late result needs: the row of the open run is deleted by then.
CREATE TABLE IF NOT EXISTS tw_lost (
    run_id INTEGER NOT NULL PRIMARY KEY,
    kind INTEGER NOT NULL,
    cause INTEGER NOT NULL,
    depth INTEGER NOT NULL
);
