CREATE TABLE ca ( -- one row: the hub's certificate authority
	one        INTEGER PRIMARY KEY CHECK (one = 1),
	cert       TEXT NOT NULL, -- DER, base64
	sealed_key TEXT NOT NULL -- base64: a nonce, and the private key sealed by AES-256-GCM with a key outside the database
);
CREATE TABLE hub_url ( -- where agents reach the hubs of this database
	url     TEXT PRIMARY KEY,
	seen_ns INTEGER NOT NULL -- when a hub last had it
);
