-- Goodput of each direction by the near agent's document, and the time from the first to the last byte by the far agent.
ALTER TABLE job ADD COLUMN near_up_bps REAL;
ALTER TABLE job ADD COLUMN near_down_bps REAL;
ALTER TABLE job ADD COLUMN far_up_ns INTEGER;
ALTER TABLE job ADD COLUMN far_down_ns INTEGER;
