-- What a run takes of the byte budgets of its hosts and links: reserved at its grant, then what it moved.
ALTER TABLE job ADD COLUMN charged INTEGER NOT NULL DEFAULT 0;
