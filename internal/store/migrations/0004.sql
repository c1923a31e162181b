-- The address of the client of a server whose test it was, an IPv4 address or an IPv6 /64; '' where the owner of the
-- history measured or imported the result.
ALTER TABLE run ADD COLUMN client TEXT NOT NULL DEFAULT '';
-- Of the document and the samples as stored, of clients' results alone.
ALTER TABLE run ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
-- Proves that the result was measured on the host that has the key of it; exports never carry it.
ALTER TABLE run ADD COLUMN seal TEXT NOT NULL DEFAULT '';
UPDATE run SET client = (SELECT substr(far, 11) FROM path WHERE key = run.path), bytes = length(doc)
	WHERE path IN (SELECT key FROM path WHERE far LIKE 'browser://_%');
CREATE INDEX run_of_client ON run(client, started_ns, bytes) WHERE client <> '';
DROP INDEX run_by_time;
CREATE INDEX run_by_time ON run(started_ns, client);
