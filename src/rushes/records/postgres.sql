-- Records on PostgreSQL.

-- name: named
-- Records of an owner by their ids.
SELECT kind, owner, id, version, doc, deleted FROM rushes.record
WHERE kind = %(kind)s AND owner = %(owner)s AND id = ANY (%(ids)s) AND NOT deleted;

-- name: put
-- Write a record if the version that is there is the one expected; a tombstone counts on and stands for none.
INSERT INTO rushes.record (kind, owner, id, version, doc, deleted, changed)
SELECT %(kind)s, %(owner)s, %(id)s, 1, %(doc)s, false, pg_current_xact_id()
WHERE coalesce(%(expected)s::integer, 0) = 0 OR EXISTS (
    SELECT FROM rushes.record WHERE kind = %(kind)s AND owner = %(owner)s AND id = %(id)s)
ON CONFLICT (kind, owner, id) DO UPDATE
SET version = record.version + 1, doc = excluded.doc, deleted = false, changed = excluded.changed
WHERE %(expected)s::integer IS NULL
    OR %(expected)s::integer = CASE WHEN record.deleted THEN 0 ELSE record.version END
RETURNING version;

-- name: delete
-- A tombstone in place of a record, if the version that is there is the one expected.
UPDATE rushes.record SET version = version + 1, doc = '{}', deleted = true, changed = pg_current_xact_id()
WHERE kind = %(kind)s AND owner = %(owner)s AND id = %(id)s AND NOT deleted
    AND (%(expected)s::integer IS NULL OR version = %(expected)s::integer)
RETURNING version;

-- name: list
-- Records of an owner in order of id.
SELECT kind, owner, id, version, doc, deleted FROM rushes.record
WHERE kind = %(kind)s AND owner = %(owner)s AND id > %(after)s AND NOT deleted ORDER BY id LIMIT %(limit)s;

-- name: changed
-- Records that a transaction wrote after a place, or one that was still under way then; and who is under way now.
SELECT kind, owner, id, version, doc, deleted, changed::text, number, pg_current_snapshot()::text FROM rushes.record
WHERE (changed, number) > (CASE WHEN %(top)s::xid8 < pg_snapshot_xmax(pg_current_snapshot())
    THEN %(top)s::xid8 ELSE '0'::xid8 END, %(number)s) OR changed = ANY (%(late)s::xid8[])
ORDER BY changed, number LIMIT %(limit)s;

-- name: restored
-- Records from a dump bear numbers of transactions that are still to come here.
UPDATE rushes.record SET changed = pg_current_xact_id() WHERE changed >= pg_snapshot_xmax(pg_current_snapshot())
RETURNING number;
