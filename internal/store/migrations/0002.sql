CREATE TABLE day ( -- what is left of results whose documents are gone
	path      TEXT NOT NULL REFERENCES path(key),
	direction TEXT NOT NULL,
	day       INTEGER NOT NULL, -- since 1970-01-01, UTC
	limiter   TEXT NOT NULL,
	n         INTEGER NOT NULL,
	sum_log   REAL NOT NULL, -- of goodput_bps: means are geometric, so that days add up
	least_bps REAL NOT NULL,
	most_bps  REAL NOT NULL,
	rtt_min_s REAL,
	PRIMARY KEY (path, direction, day, limiter)
) WITHOUT ROWID;
CREATE TABLE gone ( -- one row: results of before this are in day, and never come back
	one       INTEGER PRIMARY KEY CHECK (one = 1),
	before_ns INTEGER NOT NULL
);
INSERT INTO gone VALUES(1, -9223372036854775807);
