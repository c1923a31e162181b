-- Payload of each direction in bytes: by the near agent's document, and by the far agent. Up is what the near agent sends.
ALTER TABLE job ADD COLUMN near_up INTEGER;
ALTER TABLE job ADD COLUMN near_down INTEGER;
ALTER TABLE job ADD COLUMN far_up INTEGER;
ALTER TABLE job ADD COLUMN far_down INTEGER;
