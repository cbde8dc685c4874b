-- Records on SQLite.

-- name: version
-- The schema of records in this file.
SELECT version FROM record_schema;

-- name: named
-- Records of an owner by their ids.
SELECT kind, owner, id, version, doc, deleted FROM record
WHERE kind = :kind AND owner = :owner AND id IN (SELECT value FROM json_each(:ids)) AND NOT deleted;

-- name: put
-- Write a record if the version that is there is the one expected; a tombstone counts on and stands for none.
INSERT INTO record (kind, owner, id, version, doc, deleted, changed)
SELECT :kind, :owner, :id, 1, :doc, 0, (SELECT coalesce(max(changed), 0) + 1 FROM record)
WHERE coalesce(:expected, 0) = 0 OR EXISTS (
    SELECT 1 FROM record WHERE kind = :kind AND owner = :owner AND id = :id)
ON CONFLICT (kind, owner, id) DO UPDATE
SET version = record.version + 1, doc = excluded.doc, deleted = 0, changed = excluded.changed
WHERE :expected IS NULL OR :expected = CASE WHEN record.deleted THEN 0 ELSE record.version END
RETURNING version;

-- name: delete
-- A tombstone in place of a record, if the version that is there is the one expected.
UPDATE record SET version = version + 1, doc = '{}', deleted = 1,
    changed = (SELECT max(changed) + 1 FROM record)
WHERE kind = :kind AND owner = :owner AND id = :id AND NOT deleted AND (:expected IS NULL OR version = :expected)
RETURNING version;

-- name: list
-- Records of an owner in order of id.
SELECT kind, owner, id, version, doc, deleted FROM record
WHERE kind = :kind AND owner = :owner AND id > :after AND NOT deleted ORDER BY id LIMIT :limit;

-- name: changed
-- Records written or deleted since a change number.
SELECT kind, owner, id, version, doc, deleted, changed FROM record WHERE changed > :after ORDER BY changed LIMIT :limit;
