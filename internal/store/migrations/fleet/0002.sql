-- within_bps is how far a usual result may lie from usual_bps.
ALTER TABLE path_last ADD COLUMN within_bps REAL NOT NULL DEFAULT 0;
