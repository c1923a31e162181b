CREATE TABLE path (
	key   TEXT PRIMARY KEY,
	far   TEXT NOT NULL, -- as it was named
	label TEXT NOT NULL DEFAULT ''
);
CREATE TABLE run (
	id         TEXT PRIMARY KEY, -- UUIDv7: sorts by time
	path       TEXT NOT NULL REFERENCES path(key),
	kind       TEXT NOT NULL,
	started_ns INTEGER NOT NULL, -- UTC
	origin     TEXT NOT NULL,
	outcome    TEXT NOT NULL,
	doc        BLOB NOT NULL -- the bytes as they came, gzip
);
CREATE INDEX run_of_path ON run(path, started_ns);
CREATE INDEX run_by_time ON run(started_ns);
CREATE TABLE samples (
	run  TEXT PRIMARY KEY REFERENCES run(id) ON DELETE CASCADE,
	data BLOB NOT NULL -- gzip
);
CREATE TABLE direction (
	run         TEXT NOT NULL REFERENCES run(id) ON DELETE CASCADE,
	direction   TEXT NOT NULL,
	goodput_bps REAL,
	rtt_min_s   REAL,
	limiter     TEXT NOT NULL,
	PRIMARY KEY (run, direction)
) WITHOUT ROWID;
CREATE TABLE label (
	run   TEXT NOT NULL REFERENCES run(id) ON DELETE CASCADE,
	name  TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (run, name)
) WITHOUT ROWID;
