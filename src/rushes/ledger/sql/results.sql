-- Results and log lines.

-- name: results
-- Which of these results exist.
SELECT key, output, manifest_sha256, size, count, schema_version, publishes, text_sha256 FROM rushes.result
WHERE owner = :owner AND key = ANY (:keys);

-- name: note_aside
-- Why results are taken out.
INSERT INTO rushes.aside (owner, key, at, reason)
SELECT owner, key, :at, :reason FROM rushes.result WHERE owner = :owner AND key = ANY (:keys)
ON CONFLICT DO NOTHING;

-- name: drop_asides
-- Notes of long ago.
DELETE FROM rushes.aside WHERE at <= :before;

-- name: drop_results
-- Results taken out.
DELETE FROM rushes.result WHERE owner = :owner AND key = ANY (:keys) RETURNING key;

-- name: trim_log
-- Only the last lines of an attempt are kept.
DELETE FROM rushes.log WHERE task = :task AND fence = :fence
    AND line <= (SELECT max(line) FROM rushes.log WHERE task = :task AND fence = :fence) - :keep;
