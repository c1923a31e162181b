-- database is random, and another one in a copy that fullpipe-hub backup made; copies share secret, which proves epochs.
ALTER TABLE hub ADD COLUMN database TEXT NOT NULL DEFAULT '';
ALTER TABLE hub ADD COLUMN secret TEXT NOT NULL DEFAULT '';
