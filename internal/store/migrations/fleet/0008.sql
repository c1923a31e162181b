-- What incidents are decided from: the usual RTT as usual_bps, since when repeated tests show a worse level (0: they do
-- not), the runs in a row to which neither host could connect, and the window of a limiter that is one.
ALTER TABLE path_last ADD COLUMN usual_rtt_s REAL;
ALTER TABLE path_last ADD COLUMN within_rtt_s REAL NOT NULL DEFAULT 0;
ALTER TABLE path_last ADD COLUMN slow_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE path_last ADD COLUMN delayed_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE path_last ADD COLUMN unreachable INTEGER NOT NULL DEFAULT 0;
ALTER TABLE path_last ADD COLUMN window_bytes INTEGER NOT NULL DEFAULT 0;
-- When an incident last made the pair due.
ALTER TABLE pair ADD COLUMN asked_ns INTEGER NOT NULL DEFAULT 0;
CREATE TABLE incident (
	id          TEXT PRIMARY KEY,
	opened_ns   INTEGER NOT NULL,
	resolved_ns INTEGER NOT NULL, -- 0: open
	doc         TEXT NOT NULL -- JSON
);
CREATE INDEX incident_by_end ON incident(resolved_ns);
CREATE TABLE notice ( -- what a receiver has not taken yet
	id      TEXT PRIMARY KEY, -- the same each time that it is sent
	target  TEXT NOT NULL, -- an alert of the mesh file; '' is the command line's
	made_ns INTEGER NOT NULL,
	doc     TEXT NOT NULL -- JSON
);
CREATE TABLE silence (
	id       TEXT PRIMARY KEY,
	kind     TEXT NOT NULL, -- host, site, link or path
	name     TEXT NOT NULL,
	until_ns INTEGER NOT NULL,
	made_by  TEXT NOT NULL
);
