-- Limits of all of a session's processes together; 0 is none.
ALTER TABLE sessions ADD COLUMN memory_limit ${int} NOT NULL DEFAULT 0 CHECK (memory_limit >= 0);
ALTER TABLE sessions ADD COLUMN pids_limit ${int} NOT NULL DEFAULT 0 CHECK (pids_limit >= 0);
