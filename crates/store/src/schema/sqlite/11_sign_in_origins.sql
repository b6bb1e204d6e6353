-- Devices and networks from which users have signed in, as digests.
CREATE TABLE IF NOT EXISTS tw_sign_in_origin (
    digest VARCHAR(64) NOT NULL PRIMARY KEY,
    user_id INTEGER NOT NULL,
    kind VARCHAR(16) NOT NULL,
    seen_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS tw_sign_in_origin_user ON tw_sign_in_origin (user_id);
