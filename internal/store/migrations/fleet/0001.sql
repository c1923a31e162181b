-- A fleet of hosts that measure the paths between them. Times are nanoseconds, UTC, by the hub's clock; 0 is never.
CREATE TABLE agent (
	id           TEXT PRIMARY KEY,
	name         TEXT NOT NULL,
	nkey         TEXT NOT NULL UNIQUE, -- public key
	host_id      TEXT NOT NULL DEFAULT '',
	labels       TEXT NOT NULL DEFAULT '{}', -- JSON
	hello        TEXT NOT NULL DEFAULT '{}', -- JSON: the agent's last report
	seen_ns      INTEGER NOT NULL DEFAULT 0,
	clock_off_ns INTEGER NOT NULL DEFAULT 0, -- how far the agent's clock is ahead
	joined_ns    INTEGER NOT NULL,
	removed_ns   INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX agent_by_name ON agent(name) WHERE removed_ns = 0;
CREATE TABLE enrolment (
	hash      TEXT PRIMARY KEY, -- SHA-256 of the secret
	uses_left INTEGER NOT NULL,
	until_ns  INTEGER NOT NULL,
	networks  TEXT NOT NULL DEFAULT '', -- allowed addresses, separated by commas; '' is all
	labels    TEXT NOT NULL DEFAULT '{}', -- of the agents that join with it
	made_by   TEXT NOT NULL,
	made_ns   INTEGER NOT NULL
);
CREATE TABLE hub ( -- one row: the hub that starts runs
	one      INTEGER PRIMARY KEY CHECK (one = 1),
	epoch    INTEGER NOT NULL,
	holder   TEXT NOT NULL, -- random, of one process
	until_ns INTEGER NOT NULL -- by the database's clock
);
INSERT INTO hub VALUES(1, 0, '', 0);
CREATE TABLE mesh (
	version INTEGER PRIMARY KEY,
	text    TEXT NOT NULL,
	made_by TEXT NOT NULL,
	made_ns INTEGER NOT NULL
);
CREATE TABLE pair (
	key     TEXT PRIMARY KEY, -- as mesh.Pair.Key
	next_ns INTEGER NOT NULL, -- when its next run is due
	near    TEXT NOT NULL DEFAULT '' -- the agent that connected in the last run that worked
);
CREATE TABLE job (
	id         TEXT PRIMARY KEY, -- of the run and its document: UUIDv7
	pair       TEXT NOT NULL,
	task       TEXT NOT NULL,
	a          TEXT NOT NULL, -- agents; a < b
	b          TEXT NOT NULL,
	near       TEXT NOT NULL DEFAULT '', -- the agent that tests, from its grant on
	origin     TEXT NOT NULL,
	due_ns     INTEGER NOT NULL,
	late_ns    INTEGER NOT NULL, -- latest start
	state      TEXT NOT NULL,
	reason     TEXT NOT NULL DEFAULT '',
	detail     TEXT NOT NULL DEFAULT '', -- who or what, such as the run that used the host
	epoch      INTEGER NOT NULL DEFAULT 0,
	granted_ns INTEGER NOT NULL DEFAULT 0,
	until_ns   INTEGER NOT NULL DEFAULT 0, -- end of the grant
	ended_ns   INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX job_open ON job(due_ns) WHERE state IN ('due', 'granted');
CREATE INDEX job_by_time ON job(due_ns, id);
CREATE INDEX job_of_pair ON job(pair, due_ns);
CREATE TABLE path_last ( -- what the grid shows: the last run of each direction
	task        TEXT NOT NULL,
	sender      TEXT NOT NULL, -- agents
	receiver    TEXT NOT NULL,
	run         TEXT NOT NULL,
	at_ns       INTEGER NOT NULL,
	state       TEXT NOT NULL, -- of the last job; the figures are of the last that is done
	reason      TEXT NOT NULL DEFAULT '',
	goodput_bps REAL,
	usual_bps   REAL,
	rtt_min_s   REAL,
	limiter     TEXT NOT NULL DEFAULT '',
	measured    TEXT NOT NULL DEFAULT '', -- the run that the figures are of
	measured_ns INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (task, sender, receiver)
) WITHOUT ROWID;
CREATE TABLE event ( -- a change that a result showed
	run      TEXT NOT NULL,
	sender   TEXT NOT NULL,
	receiver TEXT NOT NULL,
	metric   TEXT NOT NULL,
	what     TEXT NOT NULL,
	task     TEXT NOT NULL,
	at_ns    INTEGER NOT NULL,
	old_value TEXT NOT NULL,
	new_value TEXT NOT NULL,
	cause    TEXT NOT NULL DEFAULT '', -- what it has in common with others
	sent_ns  INTEGER NOT NULL DEFAULT 0, -- when it was reported
	PRIMARY KEY (run, sender, receiver, metric)
) WITHOUT ROWID;
CREATE INDEX event_by_time ON event(at_ns);
CREATE TABLE light ( -- latency of one hour
	sender   TEXT NOT NULL,
	receiver TEXT NOT NULL,
	hour     INTEGER NOT NULL, -- since 1970
	sent     INTEGER NOT NULL,
	lost     INTEGER NOT NULL,
	min_s    REAL,
	p50_s    REAL,
	p95_s    REAL,
	max_s    REAL,
	mtu      INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (sender, receiver, hour)
) WITHOUT ROWID;
CREATE TABLE account ( -- users of the pages and the API
	name  TEXT PRIMARY KEY,
	role  TEXT NOT NULL,
	token TEXT NOT NULL UNIQUE -- SHA-256
);
CREATE TABLE audit (
	id     TEXT PRIMARY KEY,
	at_ns  INTEGER NOT NULL,
	made_by TEXT NOT NULL,
	what   TEXT NOT NULL,
	detail TEXT NOT NULL DEFAULT ''
);
CREATE INDEX audit_by_time ON audit(at_ns);
