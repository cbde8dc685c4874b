-- The whole index. It is never migrated: another version is made anew from the artifacts.
CREATE SCHEMA rushes_index;
CREATE TABLE rushes_index.version (number integer NOT NULL);
CREATE TABLE rushes_index.cursor (name text PRIMARY KEY, value text NOT NULL);

-- Jobs that were met: the last event number read, and whether there is more to read.
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
    duration_us bigint NOT NULL, languages text NOT NULL DEFAULT '[]', settled boolean NOT NULL DEFAULT false,
    PRIMARY KEY (owner, id)
);
CREATE INDEX video_added ON rushes_index.video (owner, added_at DESC, id DESC);
CREATE INDEX video_unsettled ON rushes_index.video (owner, id) WHERE NOT settled;

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
CREATE TABLE rushes_index.offer (
    owner text COLLATE "C" NOT NULL, video text COLLATE "C" NOT NULL, job text COLLATE "C" NOT NULL, stage text NOT NULL,
    chunk integer, kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, manifest text NOT NULL,
    PRIMARY KEY (owner, video, job, kind, key)
);
CREATE INDEX offer_key ON rushes_index.offer (owner, key);

-- Results that readers see.
CREATE TABLE rushes_index.shown (
    owner text COLLATE "C" NOT NULL, video text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL, manifest text NOT NULL, PRIMARY KEY (owner, video, kind, key)
);

-- Their observations, one a row, with the words that our tokenizer makes of them (and the kind as =kind).
CREATE TABLE rushes_index.line (
    owner text COLLATE "C" NOT NULL, video text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL, n integer NOT NULL, start_us bigint NOT NULL, end_us bigint NOT NULL,
    size integer NOT NULL, language text COLLATE "C" NOT NULL, words tsvector NOT NULL, doc text NOT NULL,
    PRIMARY KEY (owner, video, kind, key, n)
);
CREATE INDEX line_time ON rushes_index.line (owner, video, kind, start_us);
CREATE INDEX line_found ON rushes_index.line (owner, kind, language);
CREATE INDEX line_words ON rushes_index.line USING gin (words);

-- How many lines an owner has, and how many words: counted as they come and go.
CREATE TABLE rushes_index.size (owner text COLLATE "C" PRIMARY KEY, lines bigint NOT NULL, words bigint NOT NULL);

-- How long tasks took and how much they made.
CREATE TABLE rushes_index.rate (
    task text COLLATE "C" PRIMARY KEY, stage text NOT NULL, machine text NOT NULL, seconds double precision NOT NULL,
    media_seconds double precision NOT NULL, pixels bigint NOT NULL, at text COLLATE "C" NOT NULL, size bigint NOT NULL,
    voiced_seconds double precision
);
CREATE INDEX rate_stage ON rushes_index.rate (stage, machine, at DESC);

-- How often words follow each other in a line; the last may be only a beginning.
CREATE FUNCTION rushes_index.occurrences(words tsvector, said text[], prefix boolean) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    WITH word AS MATERIALIZED (SELECT lexeme, unnest(positions) AS place FROM unnest(words))
    SELECT count(*)::integer FROM word AS last
    WHERE CASE WHEN prefix THEN starts_with(last.lexeme, said[cardinality(said)])
            ELSE last.lexeme = said[cardinality(said)] END
        AND NOT EXISTS (SELECT FROM generate_series(1, cardinality(said) - 1) AS before
            WHERE NOT EXISTS (SELECT FROM word WHERE place = last.place - cardinality(said) + before
                AND lexeme = said[before]))
$$;
