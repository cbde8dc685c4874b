-- Whose settings a worker was started with: only they may drain it.
ALTER TABLE worker ADD COLUMN owner TEXT NOT NULL DEFAULT '';
