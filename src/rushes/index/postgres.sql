-- name: version
-- The version of the index that is there.
SELECT number FROM rushes_index.version;

-- name: alone
-- One process at a time makes the tables.
SELECT pg_advisory_xact_lock(7310031);

-- name: there
-- Whether there is an index; asked of a table, because what the server remembers of names may be older than the lock.
SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'rushes_index' AND tablename = 'version');

-- name: keep_version
-- The version that was made.
INSERT INTO rushes_index.version VALUES (%(version)s);

-- name: cursor
-- A cursor that was kept.
SELECT value FROM rushes_index.cursor WHERE name = %(name)s;

-- name: keep_cursor
-- Keep a cursor.
INSERT INTO rushes_index.cursor VALUES (%(name)s, %(value)s) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: queue
-- Jobs with something new to read.
INSERT INTO rushes_index.job (id, queued) SELECT DISTINCT unnest(%(jobs)s::text[]), true
ON CONFLICT (id) DO UPDATE SET queued = true;

-- name: queued
-- Jobs still to be read.
SELECT id, number FROM rushes_index.job WHERE queued ORDER BY id LIMIT %(limit)s;

-- name: met
-- A job was read up to an event.
INSERT INTO rushes_index.job (id, number) VALUES (%(job)s, %(number)s)
ON CONFLICT (id) DO UPDATE SET number = greatest(job.number, excluded.number), queued = false;

-- name: run
-- A job of a video as it is now.
INSERT INTO rushes_index.run
VALUES (%(job)s, %(owner)s, %(video)s, %(recipe)s, %(state)s, %(created_at)s, %(facts)s)
ON CONFLICT (job) DO UPDATE SET state = excluded.state, facts = excluded.facts;

-- name: video_row
-- A video with the time of its first run and the length that its newest run found; its choice is open.
INSERT INTO rushes_index.video (owner, id, added_at, duration_us)
SELECT owner, video, min(created_at), %(duration_us)s FROM rushes_index.run
WHERE owner = %(owner)s AND video = %(video)s GROUP BY owner, video
ON CONFLICT (owner, id) DO UPDATE SET added_at = excluded.added_at, duration_us = excluded.duration_us, settled = false;

-- name: offer
-- Observations of some kinds that a run offers.
INSERT INTO rushes_index.offer
SELECT * FROM json_to_recordset(%(rows)s::json) AS r(owner text, video text, job text, stage text, chunk integer,
    kind text, key text, manifest text)
ON CONFLICT (owner, video, job, kind, key) DO UPDATE SET manifest = excluded.manifest;

-- name: publish
-- Published names of a video and the results that made them.
INSERT INTO rushes_index.published SELECT %(owner)s, %(video)s, * FROM json_each_text(%(names)s::json)
ON CONFLICT (owner, video, name) DO UPDATE SET key = excluded.key;

-- name: rates_add
-- How long tasks took; the same task again replaces it.
INSERT INTO rushes_index.rate
SELECT * FROM json_to_recordset(%(rows)s::json) AS r(task text, stage text, machine text, seconds double precision,
    media_seconds double precision, pixels bigint, at text, size bigint, voiced_seconds double precision)
ON CONFLICT (task) DO UPDATE SET seconds = excluded.seconds, machine = excluded.machine, at = excluded.at,
    size = excluded.size, voiced_seconds = excluded.voiced_seconds;

-- name: rename
-- The name that a person gave.
INSERT INTO rushes_index.renamed VALUES (%(owner)s, %(video)s, %(name)s)
ON CONFLICT (owner, video) DO UPDATE SET name = excluded.name;

-- name: unname
-- Take it back.
DELETE FROM rushes_index.renamed WHERE owner = %(owner)s AND video = %(video)s;

-- name: unsettled
-- Videos whose choice of shown results is open.
SELECT owner, id FROM rushes_index.video WHERE NOT settled ORDER BY owner, id;

-- name: offers
-- Everything that runs offer of a video.
SELECT offer.*, run.created_at FROM rushes_index.offer JOIN rushes_index.run USING (job)
WHERE offer.owner = %(owner)s AND offer.video = %(video)s;

-- name: shown
-- What readers see of a video.
SELECT kind, key, manifest FROM rushes_index.shown WHERE owner = %(owner)s AND video = %(video)s;

-- name: drop
-- One result is no longer shown.
WITH gone AS (
    DELETE FROM rushes_index.line
    WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s AND key = %(key)s RETURNING size
), hidden AS (
    DELETE FROM rushes_index.shown
    WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s AND key = %(key)s
)
UPDATE rushes_index.size SET lines = size.lines - (SELECT count(*) FROM gone WHERE gone.size > 0),
    words = size.words - (SELECT coalesce(sum(gone.size), 0) FROM gone)
WHERE owner = %(owner)s;

-- name: add_shown
-- One result is shown.
INSERT INTO rushes_index.shown VALUES (%(owner)s, %(video)s, %(kind)s, %(key)s, %(manifest)s);

-- name: add_lines
-- Its observations.
INSERT INTO rushes_index.line (owner, video, kind, key, n, start_us, end_us, size, language, words, doc)
SELECT %(owner)s, %(video)s, %(kind)s, %(key)s, n, start_us, end_us, size, language, words::tsvector, doc
FROM json_to_recordset(%(rows)s::json)
    AS r(n integer, start_us bigint, end_us bigint, size integer, language text, words text, doc text);

-- name: grow
-- So many lines and words more.
INSERT INTO rushes_index.size VALUES (%(owner)s, %(lines)s, %(words)s)
ON CONFLICT (owner) DO UPDATE SET lines = size.lines + excluded.lines, words = size.words + excluded.words;

-- name: settle
-- The choice is made; languages by how many lines there are of each.
UPDATE rushes_index.video SET settled = true, languages = coalesce((
    SELECT json_agg(language ORDER BY n DESC, language)::text FROM (
        SELECT language, count(*) AS n FROM rushes_index.line
        WHERE owner = %(owner)s AND video = %(video)s AND language <> '' GROUP BY language) AS spoken), '[]')
WHERE owner = %(owner)s AND id = %(video)s;

-- name: keys
-- Every result that is offered or has made a name.
SELECT owner, key FROM rushes_index.offer WHERE %(owner)s IN ('', owner)
UNION SELECT owner, key FROM rushes_index.published WHERE %(owner)s IN ('', owner) ORDER BY owner, key;

-- name: unsettle_keys
-- Videos that results were offered for are to be settled again.
UPDATE rushes_index.video SET settled = false WHERE owner = %(owner)s AND id IN (
    SELECT video FROM rushes_index.offer WHERE owner = %(owner)s AND key = ANY (%(keys)s));

-- name: forget_offers
-- Results offer nothing any more.
DELETE FROM rushes_index.offer WHERE owner = %(owner)s AND key = ANY (%(keys)s);

-- name: forget_names
-- Their published names are gone.
DELETE FROM rushes_index.published WHERE owner = %(owner)s AND key = ANY (%(keys)s);

-- name: lines
-- Observations of one kind in order of time.
SELECT doc FROM rushes_index.line WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s
ORDER BY start_us, end_us, key, n;

-- name: rates
-- The latest rates; one whose machine is not known any more counts for each.
SELECT task, stage, machine, seconds, media_seconds, pixels, at, size, voiced_seconds FROM rushes_index.rate
WHERE stage = %(stage)s AND machine IN (%(machine)s, '') ORDER BY at DESC, task LIMIT %(limit)s;

-- name: videos
-- Videos of an owner with all that lists show: one, or those after a place in the list, newest first.
SELECT owner, id, added_at, duration_us, languages,
    (SELECT name FROM rushes_index.renamed WHERE renamed.owner = video.owner AND renamed.video = id),
    ARRAY(SELECT name FROM rushes_index.published WHERE published.owner = video.owner AND published.video = id
        ORDER BY name),
    ARRAY(SELECT json_build_array(job, recipe, state, facts) FROM rushes_index.run
        WHERE run.owner = video.owner AND run.video = id ORDER BY created_at DESC, job DESC)
FROM rushes_index.video
WHERE owner = %(owner)s AND (%(ids)s::text[] IS NULL OR id = ANY (%(ids)s::text[]))
    AND (%(added_at)s = '' OR (added_at, id) < (%(added_at)s, %(after)s))
ORDER BY added_at DESC, id DESC LIMIT %(limit)s;

-- name: summary
-- How many videos, and how long they are together.
SELECT count(*), coalesce(sum(duration_us), 0)::bigint FROM rushes_index.video WHERE owner = %(owner)s;

-- name: summary_lines
-- How many lines there are of each kind and language.
SELECT kind, language, count(*) FROM rushes_index.line WHERE owner = %(owner)s GROUP BY kind, language;

-- name: search
-- How many lines match, in how many videos, and those after a place in the answer: best first, then by video and time.
-- The score is BM25 with the constants of SQLite's FTS5, so that both put lines in the same order.
WITH term AS MATERIALIZED (
    SELECT said, prefix, (SELECT count(*) FROM rushes_index.line WHERE owner = %(owner)s AND words @@ query) AS n,
        (SELECT lines FROM rushes_index.size WHERE owner = %(owner)s) AS lines
    FROM json_to_recordset(%(terms)s::json) AS t(said text[], prefix boolean, query tsquery)
), weight AS MATERIALIZED (
    SELECT said, prefix, CASE WHEN lines - n > n THEN ln((lines - n + 0.5) / (n + 0.5)) ELSE 1e-6 END AS rarity FROM term
), found AS MATERIALIZED (
    SELECT -round((SELECT sum(rarity * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * line.size * size.lines / size.words)))
        FROM weight, LATERAL (SELECT rushes_index.occurrences(line.words, said, prefix)::double precision AS f) AS often
        )::numeric, 12)::double precision AS score, video, start_us, end_us, kind, key, n
    FROM rushes_index.line JOIN rushes_index.size ON size.owner = line.owner
    WHERE line.owner = %(owner)s AND line.words @@ %(query)s::tsquery AND %(video)s IN ('', video)
)
SELECT counted.*, page.*
FROM (SELECT count(*), count(DISTINCT video) FROM found) AS counted
LEFT JOIN LATERAL (
    SELECT found.*, line.doc FROM found JOIN rushes_index.line ON line.owner = %(owner)s AND line.video = found.video
        AND line.kind = found.kind AND line.key = found.key AND line.n = found.n
    WHERE NOT %(after)s OR (score, found.video, found.start_us, found.end_us, found.kind, found.key, found.n)
        > (%(score)s, %(at_video)s, %(at_start)s, %(at_end)s, %(at_kind)s, %(at_key)s, %(at_n)s)
    ORDER BY score, found.video, found.start_us, found.end_us, found.kind, found.key, found.n LIMIT %(limit)s
) AS page ON true;

-- name: newest_facts
-- What the newest run of a video found.
SELECT facts FROM rushes_index.run WHERE owner = %(owner)s AND video = %(video)s
ORDER BY created_at DESC, job DESC LIMIT 1;
