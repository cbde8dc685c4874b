-- The hash of a result's plain text, where it has one.
ALTER TABLE rushes.result ADD COLUMN text_sha256 text NOT NULL DEFAULT '';
