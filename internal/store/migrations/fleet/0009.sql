-- The results in an agent's outbox, by its last heartbeat.
ALTER TABLE agent ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
