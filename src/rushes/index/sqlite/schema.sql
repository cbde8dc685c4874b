-- The whole index. It is never migrated: another version is built from the artifacts.
CREATE TABLE cursor (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- Jobs: the last event number read, and whether there is more to read.
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
    name TEXT NOT NULL, path TEXT NOT NULL, shot_at TEXT NOT NULL, languages TEXT NOT NULL DEFAULT '[]', selected INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX video_added ON video (owner, added_at DESC, id DESC);
CREATE INDEX video_unselected ON video (owner, id) WHERE NOT selected;

-- Names that people gave.
CREATE TABLE renamed (owner TEXT NOT NULL, video TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (owner, video)) WITHOUT ROWID;

-- Published names, by the result that made them.
CREATE TABLE published (
    owner TEXT NOT NULL, video TEXT NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (owner, video, name)
) WITHOUT ROWID;
CREATE INDEX published_key ON published (owner, key);

-- Results with observations, whether shown or not.
CREATE TABLE result (
    owner TEXT NOT NULL, video TEXT NOT NULL, job TEXT NOT NULL, stage TEXT NOT NULL, chunk INTEGER,
    kind TEXT NOT NULL, key TEXT NOT NULL, manifest TEXT NOT NULL, profile TEXT NOT NULL,
    PRIMARY KEY (owner, video, job, kind, key)
) WITHOUT ROWID;
CREATE INDEX result_key ON result (owner, key);

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

-- What is searched: passages, made of the lines of one kind of a video, and their words as our tokenizer makes them.
CREATE TABLE passage (
    id INTEGER PRIMARY KEY, owner TEXT NOT NULL, video TEXT NOT NULL, kind TEXT NOT NULL,
    start_us INTEGER NOT NULL, end_us INTEGER NOT NULL, until_us INTEGER NOT NULL, language TEXT NOT NULL,
    confidence REAL NOT NULL, text TEXT NOT NULL, words TEXT NOT NULL, times TEXT NOT NULL
);
CREATE INDEX passage_time ON passage (owner, video, kind, start_us);
CREATE INDEX passage_label ON passage (owner, kind, text);
CREATE VIRTUAL TABLE passage_text USING fts5 (kind, words, content = 'passage', content_rowid = 'id', tokenize = 'ascii', prefix = '2 3');
CREATE TRIGGER passage_added AFTER INSERT ON passage BEGIN
    INSERT INTO passage_text (rowid, kind, words) VALUES (new.id, new.kind, new.words);
END;
CREATE TRIGGER passage_dropped AFTER DELETE ON passage BEGIN
    INSERT INTO passage_text (passage_text, rowid, kind, words) VALUES ('delete', old.id, old.kind, old.words);
END;

-- How long passages of a kind are at most, so that those around a time are found by where they begin.
CREATE TABLE extent (
    owner TEXT NOT NULL, video TEXT NOT NULL, kind TEXT NOT NULL, longest_us INTEGER NOT NULL, PRIMARY KEY (owner, video, kind)
) WITHOUT ROWID;

-- Faces over time, by which people are told apart.
CREATE TABLE track (
    owner TEXT NOT NULL, video TEXT NOT NULL, n INTEGER NOT NULL, doc TEXT NOT NULL, embedding BLOB NOT NULL,
    PRIMARY KEY (owner, video, n)
) WITHOUT ROWID;

-- A video as lists show it, with its runs, newest first.
CREATE VIEW listed_video AS SELECT owner, id, added_at, duration_us, languages,
    (SELECT name FROM renamed WHERE renamed.owner = video.owner AND renamed.video = video.id) AS renamed,
    (SELECT json_group_array(name) FROM (SELECT name FROM published
        WHERE published.owner = video.owner AND published.video = video.id ORDER BY name)) AS published,
    (SELECT json_group_array(json_array(job, recipe, state, facts)) FROM (SELECT job, recipe, state, facts FROM run
        WHERE run.owner = video.owner AND run.video = video.id ORDER BY created_at DESC, job DESC)) AS runs
FROM video;

-- A video as searches filter and order it.
CREATE VIEW catalog AS SELECT video.owner, video.id, video.name, video.path,
    CASE video.shot_at WHEN '' THEN video.added_at ELSE video.shot_at END AS at, renamed.name AS renamed
FROM video LEFT JOIN renamed ON renamed.owner = video.owner AND renamed.video = video.id;
