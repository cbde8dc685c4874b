-- The first schema of records; it may share a file with other tables.
CREATE TABLE IF NOT EXISTS record_schema (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS record (
    kind TEXT NOT NULL,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    doc TEXT NOT NULL,
    deleted INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    PRIMARY KEY (kind, owner, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS record_by_change ON record (changed);
INSERT INTO record_schema SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM record_schema);
