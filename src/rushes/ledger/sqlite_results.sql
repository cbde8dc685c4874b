-- Results: by subject and mark.

-- name: subjects
-- Where the marks of an owner's subjects begin.
SELECT id, number << 32 FROM subject WHERE owner = ? AND id IN (SELECT value FROM json_each(?));

-- name: subjects_add
-- Subjects that were not met before.
INSERT INTO subject (owner, id) SELECT ?, value FROM json_each(?) RETURNING id, number << 32;

-- name: result_add
-- A result, unless one has its mark.
INSERT INTO result (number, rest, output, manifest_sha256, size, count, schema_version, publishes)
VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: results_there
-- Results that have these marks.
SELECT mark.value, rest FROM json_each(?) AS mark CROSS JOIN result ON number BETWEEN mark.value AND mark.value + 7;

-- name: result_beside
-- A result beside others that share its mark.
INSERT INTO result (number, rest, output, manifest_sha256, size, count, schema_version, publishes)
SELECT max(number) + 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM result WHERE number BETWEEN ?1 AND ?1 + 7;

-- name: results
-- Which of these results exist.
SELECT asked.value ->> 2, output, manifest_sha256, size, count, schema_version, publishes
FROM json_each(?) AS asked CROSS JOIN result ON number BETWEEN asked.value ->> 0 AND (asked.value ->> 0) + 7
WHERE rest = asked.value ->> 1;

-- name: aside_add
-- Why results were taken out.
INSERT OR IGNORE INTO aside (owner, key, at, reason)
SELECT ?1, asked.value ->> 2, ?2, ?3
FROM json_each(?4) AS asked CROSS JOIN result ON number BETWEEN asked.value ->> 0 AND (asked.value ->> 0) + 7
WHERE rest = asked.value ->> 1;

-- name: result_drop
-- Results taken out.
DELETE FROM result WHERE number IN (
    SELECT number FROM json_each(?) AS asked
    CROSS JOIN result ON number BETWEEN asked.value ->> 0 AND (asked.value ->> 0) + 7
    WHERE rest = asked.value ->> 1
);
