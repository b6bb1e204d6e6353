-- Devices and networks from which users have signed in, as digests.
CREATE TABLE IF NOT EXISTS tw_sign_in_origin (
    digest VARCHAR(64) NOT NULL PRIMARY KEY,
    user_id BIGINT NOT NULL,
    kind VARCHAR(16) NOT NULL,
    seen_ms BIGINT NOT NULL,
    KEY tw_sign_in_origin_user (user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
