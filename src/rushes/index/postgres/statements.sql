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
-- A video with the time of its first run and what its newest run found; its choice is open.
INSERT INTO rushes_index.video (owner, id, added_at, duration_us, name, path, shot_at)
SELECT owner, video, min(created_at), %(duration_us)s, %(name)s, %(path)s, %(shot_at)s FROM rushes_index.run
WHERE owner = %(owner)s AND video = %(video)s GROUP BY owner, video
ON CONFLICT (owner, id) DO UPDATE SET added_at = excluded.added_at, duration_us = excluded.duration_us,
    name = excluded.name, path = excluded.path, shot_at = excluded.shot_at, settled = false;

-- name: offer
-- Observations of some kinds that a run offers.
INSERT INTO rushes_index.offer
SELECT * FROM json_to_recordset(%(rows)s::json) AS r(owner text, video text, job text, stage text, chunk integer,
    kind text, key text, manifest text, profile text)
ON CONFLICT (owner, video, job, kind, key) DO UPDATE SET manifest = excluded.manifest, profile = excluded.profile;

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
    WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s AND key = %(key)s
)
DELETE FROM rushes_index.shown WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s AND key = %(key)s;

-- name: add_shown
-- One result is shown.
INSERT INTO rushes_index.shown VALUES (%(owner)s, %(video)s, %(kind)s, %(key)s, %(manifest)s);

-- name: add_lines
-- Its observations.
INSERT INTO rushes_index.line (owner, video, kind, key, n, start_us, end_us, language, doc)
SELECT %(owner)s, %(video)s, %(kind)s, %(key)s, n, start_us, end_us, language, doc
FROM json_to_recordset(%(rows)s::json) AS r(n integer, start_us bigint, end_us bigint, language text, doc text);

-- name: corrections
-- What people said instead in one video.
SELECT id, video, kind, start_us, end_us, text FROM rushes_index.correction
WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s;

-- name: take_back
-- A correction is taken back; where it stood.
DELETE FROM rushes_index.correction WHERE owner = %(owner)s AND id = %(id)s RETURNING video, kind;

-- name: correct
-- What a person said instead.
INSERT INTO rushes_index.correction
VALUES (%(owner)s, %(video)s, %(kind)s, %(id)s, %(start_us)s, %(end_us)s, %(text)s);

-- name: drop_moments
-- A video's moments of one kind.
DELETE FROM rushes_index.moment WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s;

-- name: add_moments
-- A video's moments of one kind.
INSERT INTO rushes_index.moment
    (owner, video, kind, start_us, end_us, until_us, language, confidence, text, words, times, found)
SELECT %(owner)s, %(video)s, %(kind)s, start_us, end_us, until_us, language, confidence, text, words, times, found::tsvector
FROM json_to_recordset(%(rows)s::json) AS r(start_us bigint, end_us bigint, until_us bigint, language text,
    confidence double precision, text text, words text, times text, found text);

-- name: extent
-- How long they are at most.
INSERT INTO rushes_index.extent SELECT owner, video, kind, max(until_us - start_us) FROM rushes_index.moment
WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s GROUP BY owner, video, kind
ON CONFLICT (owner, video, kind) DO UPDATE SET longest_us = excluded.longest_us;

-- name: unsettle
-- The choice of a video, or of all of an owner, is open.
UPDATE rushes_index.video SET settled = false WHERE owner = %(owner)s AND %(video)s IN ('', id);

-- name: drop_tracks
-- The faces of a video.
DELETE FROM rushes_index.track WHERE owner = %(owner)s AND video = %(video)s;

-- name: add_track
-- A face of a video.
INSERT INTO rushes_index.track VALUES (%(owner)s, %(video)s, %(n)s, %(doc)s, %(direction)s);

-- name: tracks
-- Every face of an owner.
SELECT video, doc, direction FROM rushes_index.track WHERE owner = %(owner)s ORDER BY video, n;

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

-- name: gone
-- A video with everything that was known of it, and how far its jobs were read.
WITH runs AS (DELETE FROM rushes_index.run WHERE owner = %(owner)s AND video = %(video)s RETURNING job),
met AS (DELETE FROM rushes_index.job WHERE id IN (SELECT job FROM runs)),
moments AS (DELETE FROM rushes_index.moment WHERE owner = %(owner)s AND video = %(video)s),
lines AS (DELETE FROM rushes_index.line WHERE owner = %(owner)s AND video = %(video)s),
shown AS (DELETE FROM rushes_index.shown WHERE owner = %(owner)s AND video = %(video)s),
offers AS (DELETE FROM rushes_index.offer WHERE owner = %(owner)s AND video = %(video)s),
names AS (DELETE FROM rushes_index.published WHERE owner = %(owner)s AND video = %(video)s),
extents AS (DELETE FROM rushes_index.extent WHERE owner = %(owner)s AND video = %(video)s),
tracks AS (DELETE FROM rushes_index.track WHERE owner = %(owner)s AND video = %(video)s)
DELETE FROM rushes_index.video WHERE owner = %(owner)s AND id = %(video)s;

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

-- name: summary_labels
-- The most frequent texts of one kind.
SELECT text, count(*) FROM rushes_index.moment WHERE owner = %(owner)s AND kind = %(kind)s AND length(text) < 200
GROUP BY text ORDER BY count(*) DESC, text LIMIT %(limit)s;

-- name: shelf
-- Every video of an owner under the name that it goes by.
SELECT id, video.name, path, CASE shot_at WHEN '' THEN added_at ELSE shot_at END, renamed.name
FROM rushes_index.video LEFT JOIN rushes_index.renamed ON renamed.owner = video.owner AND renamed.video = id
WHERE video.owner = %(owner)s;

-- name: shelf_some
-- Some of them: what a search has found, however many there are.
SELECT id, video.name, path, CASE shot_at WHEN '' THEN added_at ELSE shot_at END, renamed.name
FROM rushes_index.video LEFT JOIN rushes_index.renamed ON renamed.owner = video.owner AND renamed.video = id
WHERE video.owner = %(owner)s AND id = ANY(%(videos)s);

-- name: count
-- How many moments hold some words, up to a number.
SELECT count(*) FROM (SELECT FROM rushes_index.moment
WHERE found @@ %(query)s::tsquery AND owner = %(owner)s LIMIT %(most)s) AS few;

-- name: find
-- Moments that hold some words, in the order in which they came.
SELECT id, video, kind, start_us, end_us, until_us, language, confidence, text, words, times FROM rushes_index.moment
WHERE found @@ %(query)s::tsquery AND owner = %(owner)s
    AND (%(videos)s::text[] IS NULL OR video = ANY (%(videos)s::text[])) ORDER BY id LIMIT %(most)s;

-- name: count_any
-- How many moments of some kinds there are, up to a number.
SELECT count(*) FROM (SELECT FROM rushes_index.moment WHERE owner = %(owner)s
AND (%(kinds)s::text[] IS NULL OR kind = ANY (%(kinds)s::text[])) LIMIT %(most)s) AS few;

-- name: find_any
-- Moments of some kinds, whatever their words.
SELECT id, video, kind, start_us, end_us, until_us, language, confidence, text, words, times FROM rushes_index.moment
WHERE owner = %(owner)s AND (%(videos)s::text[] IS NULL OR video = ANY (%(videos)s::text[]))
    AND (%(kinds)s::text[] IS NULL OR kind = ANY (%(kinds)s::text[])) ORDER BY video, kind, start_us LIMIT %(most)s;

-- name: around
-- Moments of some kinds that are there in a window: those of each kind that begin early enough to last until it.
SELECT DISTINCT ON (moment.id) moment.id, moment.video, moment.kind, moment.start_us, moment.end_us, until_us, language,
    confidence, text, words, times
FROM json_to_recordset(%(windows)s::json) AS win(v text, s bigint, e bigint)
JOIN rushes_index.extent ON extent.owner = %(owner)s AND extent.video = v
    AND (%(kinds)s::text[] IS NULL OR extent.kind = ANY (%(kinds)s::text[]))
JOIN rushes_index.moment ON moment.owner = extent.owner AND moment.video = extent.video AND moment.kind = extent.kind
    AND moment.start_us >= s - longest_us AND moment.start_us < e
WHERE greatest(until_us, moment.start_us + 1) > s AND strpos(' ' || words, ' ' || %(first)s) > 0;

-- name: newest_facts
-- What the newest run of a video found.
SELECT facts FROM rushes_index.run WHERE owner = %(owner)s AND video = %(video)s
ORDER BY created_at DESC, job DESC LIMIT 1;
