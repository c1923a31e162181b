-- The decision of a tune and its strength; '' for other commands, and in results that were kept before.
ALTER TABLE direction ADD COLUMN verdict TEXT NOT NULL DEFAULT '';
ALTER TABLE direction ADD COLUMN strength TEXT NOT NULL DEFAULT '';
