-- Records on SQLite.

-- name: version
-- The schema of records in this file.
SELECT version FROM record_schema;

-- name: row
-- A record as it stands, a tombstone too.
SELECT kind, owner, id, version, doc, deleted FROM record WHERE kind = ? AND owner = ? AND id = ?;

-- name: named
-- Records of an owner by their ids.
SELECT kind, owner, id, version, doc, deleted FROM record
WHERE kind = ? AND owner = ? AND id IN (SELECT value FROM json_each(?)) AND NOT deleted;

-- name: keep
-- Write a record: its change number is the highest.
INSERT INTO record (kind, owner, id, version, doc, deleted, changed)
VALUES (?, ?, ?, ?, ?, ?, (SELECT coalesce(max(changed), 0) + 1 FROM record))
ON CONFLICT DO UPDATE SET version = excluded.version, doc = excluded.doc, deleted = excluded.deleted,
    changed = excluded.changed;

-- name: list
-- Records of an owner in order of id.
SELECT kind, owner, id, version, doc, deleted FROM record
WHERE kind = ? AND owner = ? AND id > ? AND NOT deleted ORDER BY id LIMIT ?;

-- name: changed
-- Records written or deleted since a change number.
SELECT kind, owner, id, version, doc, deleted, changed FROM record WHERE changed > ? ORDER BY changed LIMIT ?;
