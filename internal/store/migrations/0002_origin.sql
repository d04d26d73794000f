-- What was made with a token ends with it: origin is that token's id, '' where
-- no token had a part. It refers to no row on purpose: tokens are pruned.
ALTER TABLE tokens ADD COLUMN origin ${id} NOT NULL DEFAULT '';
ALTER TABLE web_logins ADD COLUMN origin ${id} NOT NULL DEFAULT '';
ALTER TABLE login_links ADD COLUMN origin ${id} NOT NULL DEFAULT '';
CREATE INDEX tokens_origin ON tokens (origin) WHERE origin <> '';
CREATE INDEX web_logins_origin ON web_logins (origin) WHERE origin <> '';
