-- The places that dropped packets, separated by commas; '' in results that were kept before.
ALTER TABLE direction ADD COLUMN lost_at TEXT NOT NULL DEFAULT '';
