-- Whose settings a worker was started with: only they may drain it.
ALTER TABLE rushes.worker ADD COLUMN owner text NOT NULL DEFAULT '';
