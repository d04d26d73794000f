-- birth is the boot id and the start of the process that pid names, by which it
-- is told from a later one of that number. login_shell, output_limit and
-- no_checkpoint are of the request: what runs again runs the same way. rerun_of
-- is the session that this one repeats, '' for none; it refers to no row on
-- purpose: that one may be removed.
ALTER TABLE sessions ADD COLUMN birth TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN login_shell ${int} NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN output_limit ${int} NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN no_checkpoint ${int} NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN rerun_of ${id} NOT NULL DEFAULT '';
-- The ended ones of each owner, the oldest of which go.
CREATE INDEX sessions_owner_ended ON sessions (owner, ended_at, id) WHERE ended_at IS NOT NULL;
