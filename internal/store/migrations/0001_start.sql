-- Times are Unix microseconds. ${…} are the dialect's words.

CREATE TABLE users (
	id            ${id} NOT NULL PRIMARY KEY,
	name          TEXT NOT NULL CHECK (name <> ''),
	uid           ${int} CHECK (uid >= 0),
	role          TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'approver', 'agent', 'admin')),
	disabled      ${int} NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
	password_hash TEXT NOT NULL DEFAULT '',
	created_at    ${int} NOT NULL
)${strict};
-- Two names that differ in case only are one person to a reader.
CREATE UNIQUE INDEX users_name ON users (lower(name));
CREATE UNIQUE INDEX users_uid ON users (uid);

CREATE TABLE user_groups (
	id         ${id} NOT NULL PRIMARY KEY,
	name       TEXT NOT NULL CHECK (name <> ''),
	created_at ${int} NOT NULL
)${strict};
CREATE UNIQUE INDEX user_groups_name ON user_groups (lower(name));

CREATE TABLE group_members (
	group_id ${id} NOT NULL REFERENCES user_groups (id) ON DELETE CASCADE,
	user_id  ${id} NOT NULL REFERENCES users (id),
	PRIMARY KEY (group_id, user_id)
)${strict};
CREATE INDEX group_members_user ON group_members (user_id);

CREATE TABLE tokens (
	id           ${id} NOT NULL PRIMARY KEY,
	user_id      ${id} NOT NULL REFERENCES users (id),
	name         TEXT NOT NULL,
	role         TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'approver', 'agent', 'admin')),
	hash         ${blob} NOT NULL UNIQUE CHECK (length(hash) = 32),
	created_at   ${int} NOT NULL,
	expires_at   ${int} NOT NULL,
	revoked_at   ${int},
	last_used_at ${int}
)${strict};
CREATE UNIQUE INDEX tokens_name ON tokens (user_id, name) WHERE revoked_at IS NULL AND name <> '';

CREATE TABLE web_logins (
	id          ${id} NOT NULL PRIMARY KEY,
	user_id     ${id} NOT NULL REFERENCES users (id),
	role        TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'approver', 'agent', 'admin')),
	cookie_hash ${blob} NOT NULL UNIQUE CHECK (length(cookie_hash) = 32),
	key_hash    ${blob} NOT NULL CHECK (length(key_hash) = 32),
	created_at  ${int} NOT NULL,
	expires_at  ${int} NOT NULL,
	revoked_at  ${int}
)${strict};
CREATE INDEX web_logins_user ON web_logins (user_id);

CREATE TABLE login_links (
	id         ${id} NOT NULL PRIMARY KEY,
	user_id    ${id} NOT NULL REFERENCES users (id),
	role       TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'approver', 'agent', 'admin')),
	hash       ${blob} NOT NULL UNIQUE CHECK (length(hash) = 32),
	created_by ${id} NOT NULL REFERENCES users (id),
	created_at ${int} NOT NULL,
	expires_at ${int} NOT NULL,
	until      ${int},
	used_at    ${int},
	-- A link makes one login: the second wall behind used_at.
	web_login  ${id} UNIQUE,
	CHECK ((used_at IS NULL) = (web_login IS NULL))
)${strict};

CREATE TABLE sessions (
	id           ${id} NOT NULL PRIMARY KEY,
	owner        ${id} NOT NULL REFERENCES users (id),
	name         TEXT NOT NULL,
	state        TEXT NOT NULL CHECK (state IN ('starting', 'running', 'exited', 'lost')),
	argv         TEXT NOT NULL,
	cwd          TEXT NOT NULL,
	env          TEXT NOT NULL,
	cols         ${int} NOT NULL CHECK (cols BETWEEN 1 AND 65535),
	rows         ${int} NOT NULL CHECK (rows BETWEEN 1 AND 65535),
	pid          ${int} NOT NULL DEFAULT 0,
	exit_code    ${int},
	signal       TEXT NOT NULL DEFAULT '',
	created_at   ${int} NOT NULL,
	started_at   ${int},
	ended_at     ${int},
	epoch        ${int} NOT NULL,
	final_offset ${int} NOT NULL DEFAULT 0,
	error        TEXT NOT NULL DEFAULT '',
	CHECK ((ended_at IS NOT NULL) = (state IN ('exited', 'lost'))),
	CHECK (exit_code IS NULL OR state = 'exited')
)${strict};
-- Also the index of the living, which limits are counted by.
CREATE INDEX sessions_living ON sessions (owner) WHERE state IN ('starting', 'running');
CREATE UNIQUE INDEX sessions_living_name ON sessions (owner, name)
	WHERE state IN ('starting', 'running') AND name <> '';
CREATE INDEX sessions_owner ON sessions (owner, id);
CREATE INDEX sessions_name ON sessions (name);
CREATE INDEX sessions_ended ON sessions (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE session_labels (
	session_id ${id} NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	key        TEXT NOT NULL CHECK (key <> ''),
	value      TEXT NOT NULL,
	PRIMARY KEY (session_id, key)
)${strict};
CREATE INDEX session_labels_key ON session_labels (key, value);

-- session_id refers to no row on purpose: a key outlives its session, so that
-- repeating the request is told that the session is gone.
CREATE TABLE idempotency (
	owner      ${id} NOT NULL REFERENCES users (id),
	key        TEXT NOT NULL CHECK (key <> ''),
	digest     TEXT NOT NULL,
	session_id ${id} NOT NULL UNIQUE,
	created_at ${int} NOT NULL,
	PRIMARY KEY (owner, key)
)${strict};
CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE audit (
	id        ${serial},
	at        ${int} NOT NULL,
	principal TEXT NOT NULL,
	via       TEXT NOT NULL,
	action    TEXT NOT NULL CHECK (action <> ''),
	target    TEXT NOT NULL,
	detail    TEXT NOT NULL
)${strict};
CREATE INDEX audit_age ON audit (at);
