-- Results: by subject and mark.

-- name: subjects
-- The numbers of subjects.
SELECT id, number FROM subject WHERE id IN (SELECT value FROM json_each(?));

-- name: subjects_add
-- Subjects that were not met before.
INSERT INTO subject (id) SELECT value FROM json_each(?) RETURNING id, number;

-- name: result_add
-- A result, unless one has its mark.
INSERT INTO result (number, owner, key, output, manifest_sha256, size, count, schema_version, publishes)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: results_there
-- Results that have these marks.
SELECT owner, result.key FROM json_each(?) AS mark CROSS JOIN result ON number BETWEEN mark.value AND mark.value + 7;

-- name: result_beside
-- A result beside others that share its mark.
INSERT INTO result (number, owner, key, output, manifest_sha256, size, count, schema_version, publishes)
SELECT max(number) + 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM result WHERE number BETWEEN ?1 AND ?1 + 7;

-- name: results
-- Which of these results exist.
SELECT result.key, output, manifest_sha256, size, count, schema_version, publishes
FROM json_each(?) AS asked CROSS JOIN result ON number BETWEEN asked.value ->> 0 AND (asked.value ->> 0) + 7
WHERE owner = ? AND result.key = asked.value ->> 1;

-- name: aside_add
-- Why results were taken out.
INSERT OR IGNORE INTO aside (owner, key, at, reason)
SELECT owner, result.key, ?, ?
FROM json_each(?) AS asked CROSS JOIN result ON number BETWEEN asked.value ->> 0 AND (asked.value ->> 0) + 7
WHERE owner = ? AND result.key = asked.value ->> 1;

-- name: result_drop
-- Results taken out.
DELETE FROM result WHERE number IN (
    SELECT number FROM json_each(?) AS asked
    CROSS JOIN result ON number BETWEEN asked.value ->> 0 AND (asked.value ->> 0) + 7
    WHERE owner = ? AND result.key = asked.value ->> 1
);
