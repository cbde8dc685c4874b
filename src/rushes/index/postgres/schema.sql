-- The whole index. It is never migrated: another version is built from the artifacts.
CREATE SCHEMA rushes_index;
CREATE TABLE rushes_index.version (number integer NOT NULL);
CREATE TABLE rushes_index.cursor (name text PRIMARY KEY, value text NOT NULL);

-- Jobs: the last event number read, and whether there is more to read.
CREATE TABLE rushes_index.job (id text COLLATE "C" PRIMARY KEY, number bigint NOT NULL DEFAULT 0, queued boolean NOT NULL DEFAULT false);
CREATE INDEX job_queued ON rushes_index.job (id) WHERE queued;

-- One job of one video that has a plan.
CREATE TABLE rushes_index.run (
    job text COLLATE "C" PRIMARY KEY, owner text COLLATE "C" NOT NULL, video text COLLATE "C" NOT NULL,
    recipe text NOT NULL, state text NOT NULL, created_at text COLLATE "C" NOT NULL, facts text NOT NULL
);
CREATE INDEX run_video ON rushes_index.run (owner, video, created_at, job);

-- What lists show of a video; made from its runs.
CREATE TABLE rushes_index.video (
    owner text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, added_at text COLLATE "C" NOT NULL,
    duration_us bigint NOT NULL, name text NOT NULL, path text NOT NULL, shot_at text COLLATE "C" NOT NULL,
    languages text NOT NULL DEFAULT '[]', selected boolean NOT NULL DEFAULT false,
    PRIMARY KEY (owner, id)
);
CREATE INDEX video_added ON rushes_index.video (owner, added_at DESC, id DESC);
CREATE INDEX video_unselected ON rushes_index.video (owner, id) WHERE NOT selected;

-- Names that people gave, as JSON: they may hold what no text can.
CREATE TABLE rushes_index.renamed (
    owner text COLLATE "C" NOT NULL, video text COLLATE "C" NOT NULL, name text NOT NULL, PRIMARY KEY (owner, video)
);

-- Published names, by the result that made them.
CREATE TABLE rushes_index.published (
    owner text COLLATE "C" NOT NULL, video text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL, PRIMARY KEY (owner, video, name)
);
CREATE INDEX published_key ON rushes_index.published (owner, key);

-- Results with observations, whether shown or not.
CREATE TABLE rushes_index.result (
    owner text COLLATE "C" NOT NULL, video text COLLATE "C" NOT NULL, job text COLLATE "C" NOT NULL, stage text NOT NULL,
    chunk integer, kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, manifest text NOT NULL,
    profile text NOT NULL, PRIMARY KEY (owner, video, job, kind, key)
);
CREATE INDEX result_key ON rushes_index.result (owner, key);

-- Results that readers see.
CREATE TABLE rushes_index.shown (
    owner text COLLATE "C" NOT NULL, video text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL, manifest text NOT NULL, PRIMARY KEY (owner, video, kind, key)
);

-- Their observations, one a row.
CREATE TABLE rushes_index.line (
    owner text COLLATE "C" NOT NULL, video text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL, n integer NOT NULL, start_us bigint NOT NULL, end_us bigint NOT NULL,
    language text COLLATE "C" NOT NULL, doc text NOT NULL, PRIMARY KEY (owner, video, kind, key, n)
);
CREATE INDEX line_time ON rushes_index.line (owner, video, kind, start_us);
CREATE INDEX line_found ON rushes_index.line (owner, kind, language);

-- What people said instead, as JSON: it may hold what no text can.
CREATE TABLE rushes_index.correction (
    owner text COLLATE "C" NOT NULL, video text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL, start_us bigint NOT NULL, end_us bigint NOT NULL, text text NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX correction_video ON rushes_index.correction (owner, video, kind);

-- What is searched: passages, made of the lines of one kind of a video, and their words as our tokenizer makes them
-- (in `found` with their places, and the kind as =kind).
CREATE TABLE rushes_index.passage (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, owner text COLLATE "C" NOT NULL, video text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL, start_us bigint NOT NULL, end_us bigint NOT NULL, until_us bigint NOT NULL,
    language text COLLATE "C" NOT NULL, confidence double precision NOT NULL, text text COLLATE "C" NOT NULL,
    words text COLLATE "C" NOT NULL, times text NOT NULL, found tsvector NOT NULL
);
CREATE INDEX passage_time ON rushes_index.passage (owner, video, kind, start_us);
CREATE INDEX passage_label ON rushes_index.passage (owner, kind) INCLUDE (text) WHERE length(text) < 200;
CREATE INDEX passage_found ON rushes_index.passage USING gin (found);

-- How long passages of a kind are at most, so that those around a time are found by where they begin.
CREATE TABLE rushes_index.extent (
    owner text COLLATE "C" NOT NULL, video text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL,
    longest_us bigint NOT NULL, PRIMARY KEY (owner, video, kind)
);

-- Faces over time, by which people are told apart.
CREATE TABLE rushes_index.track (
    owner text COLLATE "C" NOT NULL, video text COLLATE "C" NOT NULL, n integer NOT NULL, doc text NOT NULL,
    embedding bytea NOT NULL, PRIMARY KEY (owner, video, n)
);

-- A video as lists show it, with its runs, newest first.
CREATE VIEW rushes_index.listed_video AS SELECT owner, id, added_at, duration_us, languages,
    (SELECT name FROM rushes_index.renamed WHERE renamed.owner = video.owner AND renamed.video = video.id) AS renamed,
    (SELECT coalesce(json_agg(name ORDER BY name), '[]')::text FROM rushes_index.published
        WHERE published.owner = video.owner AND published.video = video.id) AS published,
    (SELECT json_agg(json_build_array(job, recipe, state, facts) ORDER BY created_at DESC, job DESC)::text
        FROM rushes_index.run WHERE run.owner = video.owner AND run.video = video.id) AS runs
FROM rushes_index.video;

-- A video as searches filter and order it.
CREATE VIEW rushes_index.catalog AS SELECT video.owner, video.id, video.name, video.path,
    CASE video.shot_at WHEN '' THEN video.added_at ELSE video.shot_at END AS at, renamed.name AS renamed
FROM rushes_index.video LEFT JOIN rushes_index.renamed ON renamed.owner = video.owner AND renamed.video = video.id;
