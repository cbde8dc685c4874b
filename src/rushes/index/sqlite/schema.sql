-- The whole index. It is never migrated: another version is made anew from the artifacts.
CREATE TABLE cursor (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Jobs that were met: the last event number read, and whether there is more to read.
CREATE TABLE job (id TEXT PRIMARY KEY, number INTEGER NOT NULL DEFAULT 0, queued INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE INDEX job_queued ON job (id) WHERE queued;

-- One job of one video that has a plan.
CREATE TABLE run (
    job TEXT PRIMARY KEY, owner TEXT NOT NULL, video TEXT NOT NULL, recipe TEXT NOT NULL, state TEXT NOT NULL,
    created_at TEXT NOT NULL, facts TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX run_video ON run (owner, video, created_at, job);

-- What lists show of a video; made from its runs.
CREATE TABLE video (
    owner TEXT NOT NULL, id TEXT NOT NULL, added_at TEXT NOT NULL, duration_us INTEGER NOT NULL,
    name TEXT NOT NULL, path TEXT NOT NULL, shot_at TEXT NOT NULL, languages TEXT NOT NULL DEFAULT '[]', settled INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX video_added ON video (owner, added_at DESC, id DESC);
CREATE INDEX video_unsettled ON video (owner, id) WHERE NOT settled;

-- Names that people gave.
CREATE TABLE renamed (owner TEXT NOT NULL, video TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (owner, video)) WITHOUT ROWID;

-- Published names, by the result that made them.
CREATE TABLE published (
    owner TEXT NOT NULL, video TEXT NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (owner, video, name)
) WITHOUT ROWID;
CREATE INDEX published_key ON published (owner, key);

-- Results with observations, whether shown or not.
CREATE TABLE offer (
    owner TEXT NOT NULL, video TEXT NOT NULL, job TEXT NOT NULL, stage TEXT NOT NULL, chunk INTEGER,
    kind TEXT NOT NULL, key TEXT NOT NULL, manifest TEXT NOT NULL, profile TEXT NOT NULL,
    PRIMARY KEY (owner, video, job, kind, key)
) WITHOUT ROWID;
CREATE INDEX offer_key ON offer (owner, key);

-- Results that readers see.
CREATE TABLE shown (
    owner TEXT NOT NULL, video TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, manifest TEXT NOT NULL,
    PRIMARY KEY (owner, video, kind, key)
) WITHOUT ROWID;

-- Their observations, one a row.
CREATE TABLE line (
    id INTEGER PRIMARY KEY, owner TEXT NOT NULL, video TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
    n INTEGER NOT NULL, start_us INTEGER NOT NULL, end_us INTEGER NOT NULL, language TEXT NOT NULL, doc TEXT NOT NULL
);
CREATE INDEX line_time ON line (owner, video, kind, start_us);
CREATE INDEX line_key ON line (owner, video, kind, key);
CREATE INDEX line_found ON line (owner, kind, language);

-- What people said instead, as JSON: it may hold what no text can.
CREATE TABLE correction (
    owner TEXT NOT NULL, video TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL,
    start_us INTEGER NOT NULL, end_us INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX correction_video ON correction (owner, video, kind);

-- What is searched: moments, made of the lines of one kind of a video, and their words as our tokenizer makes them.
CREATE TABLE moment (
    id INTEGER PRIMARY KEY, owner TEXT NOT NULL, video TEXT NOT NULL, kind TEXT NOT NULL,
    start_us INTEGER NOT NULL, end_us INTEGER NOT NULL, until_us INTEGER NOT NULL, language TEXT NOT NULL,
    confidence REAL NOT NULL, text TEXT NOT NULL, words TEXT NOT NULL, times TEXT NOT NULL
);
CREATE INDEX moment_time ON moment (owner, video, kind, start_us);
CREATE INDEX moment_label ON moment (owner, kind, text);
CREATE VIRTUAL TABLE word USING fts5 (kind, words, content = 'moment', content_rowid = 'id', tokenize = 'ascii', prefix = '2 3');

-- How long moments of a kind are at most, so that those around a time are found by where they begin.
CREATE TABLE extent (
    owner TEXT NOT NULL, video TEXT NOT NULL, kind TEXT NOT NULL, longest_us INTEGER NOT NULL, PRIMARY KEY (owner, video, kind)
) WITHOUT ROWID;

-- Faces over time, by which people are told apart.
CREATE TABLE track (
    owner TEXT NOT NULL, video TEXT NOT NULL, n INTEGER NOT NULL, doc TEXT NOT NULL, direction BLOB NOT NULL,
    PRIMARY KEY (owner, video, n)
) WITHOUT ROWID;

-- How long tasks took and how much they made.
CREATE TABLE rate (
    task TEXT PRIMARY KEY, stage TEXT NOT NULL, machine TEXT NOT NULL, seconds REAL NOT NULL,
    media_seconds REAL NOT NULL, pixels INTEGER NOT NULL, at TEXT NOT NULL, size INTEGER NOT NULL, voiced_seconds REAL
) WITHOUT ROWID;
CREATE INDEX rate_stage ON rate (stage, machine, at DESC);
