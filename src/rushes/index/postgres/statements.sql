-- name: cursor
-- A cursor that was kept.
SELECT value FROM rushes_index.cursor WHERE name = %(name)s;

-- name: keep_cursor
-- Keep a cursor.
INSERT INTO rushes_index.cursor VALUES (%(name)s, %(value)s) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: queue_jobs
-- Jobs with something new to read.
INSERT INTO rushes_index.job (id, queued) SELECT DISTINCT unnest(%(jobs)s::text[]), true
ON CONFLICT (id) DO UPDATE SET queued = true;

-- name: backlog_jobs
-- Jobs still to be read.
SELECT id, number FROM rushes_index.job WHERE queued ORDER BY id LIMIT %(limit)s;

-- name: backlog_videos
-- Videos whose shown results are still to be selected.
SELECT owner, id FROM rushes_index.video WHERE NOT selected ORDER BY owner, id;

-- name: job_read
-- A job was read up to an event.
INSERT INTO rushes_index.job (id, number) VALUES (%(job)s, %(number)s)
ON CONFLICT (id) DO UPDATE SET number = greatest(job.number, excluded.number), queued = false;

-- name: run
-- A job of a video as it is now.
INSERT INTO rushes_index.run VALUES (%(job)s, %(owner)s, %(video)s, %(recipe)s, %(state)s, %(created_at)s, %(facts)s)
ON CONFLICT (job) DO UPDATE SET state = excluded.state, facts = excluded.facts;

-- name: newest_facts
-- What the newest run of a video found.
SELECT facts FROM rushes_index.run WHERE owner = %(owner)s AND video = %(video)s ORDER BY created_at DESC, job DESC LIMIT 1;

-- name: video
-- A video with the time of its first run and what its newest run found; it is to be selected again.
INSERT INTO rushes_index.video (owner, id, added_at, duration_us, name, path, shot_at)
SELECT owner, video, min(created_at), %(duration_us)s, %(name)s, %(path)s, %(shot_at)s FROM rushes_index.run
WHERE owner = %(owner)s AND video = %(video)s GROUP BY owner, video
ON CONFLICT (owner, id) DO UPDATE SET added_at = excluded.added_at, duration_us = excluded.duration_us,
    name = excluded.name, path = excluded.path, shot_at = excluded.shot_at, selected = false;

-- name: add_result
-- Observations of one kind in a result of a run.
INSERT INTO rushes_index.result SELECT * FROM json_to_recordset(%(rows)s::json) AS r(owner text, video text, job text, stage text, chunk integer,
    kind text, key text, manifest text, profile text)
ON CONFLICT (owner, video, job, kind, key) DO UPDATE SET manifest = excluded.manifest, profile = excluded.profile;

-- name: publish
-- A published name of a video and the result that made it.
INSERT INTO rushes_index.published SELECT * FROM json_to_recordset(%(rows)s::json) AS r(owner text, video text, name text, key text)
ON CONFLICT (owner, video, name) DO UPDATE SET key = excluded.key;

-- name: rename
-- The name that a person gave.
INSERT INTO rushes_index.renamed VALUES (%(owner)s, %(video)s, %(name)s) ON CONFLICT (owner, video) DO UPDATE SET name = excluded.name;

-- name: unname
-- Take it back.
DELETE FROM rushes_index.renamed WHERE owner = %(owner)s AND video = %(video)s;

-- name: video_name
-- A video's name in its file, the one that a person gave, and how long it is.
SELECT video.name, renamed.name, duration_us FROM rushes_index.video
LEFT JOIN rushes_index.renamed ON renamed.owner = video.owner AND renamed.video = id
WHERE video.owner = %(owner)s AND id = %(video)s;

-- name: results
-- Results of a video's runs, each with the time of its run.
SELECT result.*, run.created_at FROM rushes_index.result JOIN rushes_index.run USING (job)
WHERE result.owner = %(owner)s AND result.video = %(video)s;

-- name: shown
-- What readers see of a video.
SELECT kind, key, manifest FROM rushes_index.shown WHERE owner = %(owner)s AND video = %(video)s;

-- name: published
-- Published names of a video.
SELECT name, key FROM rushes_index.published WHERE owner = %(owner)s AND video = %(video)s;

-- name: drop_lines
-- The lines of one result.
DELETE FROM rushes_index.line WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s AND key = %(key)s;

-- name: hide
-- One result is no longer shown.
DELETE FROM rushes_index.shown WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s AND key = %(key)s;

-- name: show
-- One result is shown.
INSERT INTO rushes_index.shown VALUES (%(owner)s, %(video)s, %(kind)s, %(key)s, %(manifest)s);

-- name: add_line
-- One observation.
INSERT INTO rushes_index.line (owner, video, kind, key, n, start_us, end_us, language, doc)
SELECT * FROM json_to_recordset(%(rows)s::json) AS r(owner text, video text, kind text, key text, n integer,
    start_us bigint, end_us bigint, language text, doc text);

-- name: selected
-- A video is selected; its languages by how many lines there are of each.
UPDATE rushes_index.video SET selected = true, languages = coalesce((
    SELECT json_agg(language ORDER BY n DESC, language)::text FROM (
        SELECT language, count(*) AS n FROM rushes_index.line
        WHERE owner = %(owner)s AND video = %(video)s AND language <> '' GROUP BY language) AS spoken), '[]')
WHERE owner = %(owner)s AND id = %(video)s;

-- name: reselect
-- A video, or all of an owner, is to be selected again.
UPDATE rushes_index.video SET selected = false WHERE owner = %(owner)s AND %(video)s IN ('', id);

-- name: corrections
-- What people said instead in one video.
SELECT id, video, kind, start_us, end_us, text FROM rushes_index.correction
WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s;

-- name: add_correction
-- What a person said instead.
INSERT INTO rushes_index.correction (owner, video, kind, id, start_us, end_us, text)
VALUES (%(owner)s, %(video)s, %(kind)s, %(id)s, %(start_us)s, %(end_us)s, %(text)s);

-- name: remove_correction
-- A correction is taken back; where it was.
DELETE FROM rushes_index.correction WHERE owner = %(owner)s AND id = %(id)s RETURNING video, kind;

-- name: drop_passages
-- The passages of a video of one kind.
DELETE FROM rushes_index.passage WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s;

-- name: add_passage
-- One passage.
INSERT INTO rushes_index.passage
    (owner, video, kind, start_us, end_us, until_us, language, confidence, text, words, times, found)
SELECT owner, video, kind, start_us, end_us, until_us, language, confidence, text, words, times, found::tsvector
FROM json_to_recordset(%(rows)s::json) AS r(owner text, video text, kind text, start_us bigint, end_us bigint, until_us bigint,
    language text, confidence double precision, text text, words text, times text, found text);

-- name: extent
-- How long the passages of a video of one kind are at most.
INSERT INTO rushes_index.extent SELECT owner, video, kind, max(until_us - start_us) FROM rushes_index.passage
WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s GROUP BY owner, video, kind
ON CONFLICT (owner, video, kind) DO UPDATE SET longest_us = excluded.longest_us;

-- name: add_track
-- A face of a video.
INSERT INTO rushes_index.track VALUES (%(owner)s, %(video)s, %(n)s, %(doc)s, %(embedding)s);

-- name: tracks
-- Every face of an owner.
SELECT video, doc, embedding FROM rushes_index.track WHERE owner = %(owner)s ORDER BY video, n;

-- name: reselect_videos_of
-- Videos of some results are to be selected again.
UPDATE rushes_index.video SET selected = false
WHERE owner = %(owner)s AND id IN (SELECT video FROM rushes_index.result WHERE owner = %(owner)s AND key = ANY (%(keys)s));

-- name: remove_results
-- Some results are not offered any more.
DELETE FROM rushes_index.result WHERE owner = %(owner)s AND key = ANY (%(keys)s);

-- name: remove_published
-- Nor are their published names.
DELETE FROM rushes_index.published WHERE owner = %(owner)s AND key = ANY (%(keys)s);

-- name: drop_passages_of_video
-- Its passages.
DELETE FROM rushes_index.passage WHERE owner = %(owner)s AND video = %(video)s;

-- name: drop_lines_of_video
-- Its lines.
DELETE FROM rushes_index.line WHERE owner = %(owner)s AND video = %(video)s;

-- name: drop_shown_of_video
-- What readers saw of it.
DELETE FROM rushes_index.shown WHERE owner = %(owner)s AND video = %(video)s;

-- name: drop_results_of_video
-- Results of its runs.
DELETE FROM rushes_index.result WHERE owner = %(owner)s AND video = %(video)s;

-- name: drop_published_of_video
-- Its published names.
DELETE FROM rushes_index.published WHERE owner = %(owner)s AND video = %(video)s;

-- name: drop_extents_of_video
-- How long its passages were.
DELETE FROM rushes_index.extent WHERE owner = %(owner)s AND video = %(video)s;

-- name: drop_tracks_of_video
-- The faces of a video.
DELETE FROM rushes_index.track WHERE owner = %(owner)s AND video = %(video)s;

-- name: drop_jobs_of_video
-- How far its jobs were read.
DELETE FROM rushes_index.job WHERE id IN (SELECT job FROM rushes_index.run WHERE owner = %(owner)s AND video = %(video)s);

-- name: drop_runs_of_video
-- Its runs.
DELETE FROM rushes_index.run WHERE owner = %(owner)s AND video = %(video)s;

-- name: drop_video_of_video
-- The video itself.
DELETE FROM rushes_index.video WHERE owner = %(owner)s AND id = %(video)s;

-- name: lines
-- Observations of one kind in order of time.
SELECT doc FROM rushes_index.line WHERE owner = %(owner)s AND video = %(video)s AND kind = %(kind)s ORDER BY start_us, end_us, key, n;

-- name: videos
-- Videos of an owner after a position in the list, newest first; no OR, which would read every page before it.
SELECT * FROM rushes_index.listed_video WHERE owner = %(owner)s AND (added_at, id) < (%(added_at)s, %(after)s)
ORDER BY added_at DESC, id DESC LIMIT %(limit)s;

-- name: videos_by_id
-- Some of them.
SELECT * FROM rushes_index.listed_video WHERE owner = %(owner)s AND id = ANY (%(ids)s) ORDER BY added_at DESC, id DESC;

-- name: catalog
-- Names and dates of an owner's videos.
SELECT id, name, path, at, renamed FROM rushes_index.catalog WHERE owner = %(owner)s;

-- name: catalog_by_id
-- Some of them: those that a search has found, however many there are.
SELECT id, name, path, at, renamed FROM rushes_index.catalog WHERE owner = %(owner)s AND id = ANY (%(ids)s);

-- name: summary
-- How many videos, and how long they are together.
SELECT count(*), coalesce(sum(duration_us), 0)::bigint FROM rushes_index.video WHERE owner = %(owner)s;

-- name: summary_lines
-- How many lines there are of each kind and language.
SELECT kind, language, count(*) FROM rushes_index.line WHERE owner = %(owner)s GROUP BY kind, language;

-- name: summary_labels
-- The most frequent texts of one kind.
SELECT text, count(*) FROM rushes_index.passage WHERE owner = %(owner)s AND kind = %(kind)s AND length(text) < 200
GROUP BY text ORDER BY count(*) DESC, text LIMIT %(limit)s;

-- name: count
-- How many passages hold some words, up to a number.
SELECT count(*) FROM (SELECT FROM rushes_index.passage
WHERE found @@ %(query)s::tsquery AND owner = %(owner)s LIMIT %(limit)s) AS few;

-- name: find
-- Passages that hold some words, in the order in which they came.
SELECT id, video, kind, start_us, end_us, until_us, language, confidence, text, words, times FROM rushes_index.passage
WHERE found @@ %(query)s::tsquery AND owner = %(owner)s
    AND (%(videos)s::text[] IS NULL OR video = ANY (%(videos)s::text[])) ORDER BY id LIMIT %(limit)s;

-- name: count_any
-- How many passages of some kinds there are, up to a number.
SELECT count(*) FROM (SELECT FROM rushes_index.passage WHERE owner = %(owner)s
AND (%(kinds)s::text[] IS NULL OR kind = ANY (%(kinds)s::text[])) LIMIT %(limit)s) AS few;

-- name: find_any
-- Passages of some kinds, whatever their words.
SELECT id, video, kind, start_us, end_us, until_us, language, confidence, text, words, times FROM rushes_index.passage
WHERE owner = %(owner)s AND (%(videos)s::text[] IS NULL OR video = ANY (%(videos)s::text[]))
    AND (%(kinds)s::text[] IS NULL OR kind = ANY (%(kinds)s::text[])) ORDER BY video, kind, start_us LIMIT %(limit)s;

-- name: find_in_windows
-- Passages of some kinds that are there in a window: those of each kind that begin early enough to last until it.
SELECT passage.id, passage.video, passage.kind, passage.start_us, passage.end_us, until_us, language,
    confidence, text, words, times
FROM json_to_recordset(%(windows)s::json) AS win(video text, first bigint, last bigint)
JOIN rushes_index.extent ON extent.owner = %(owner)s AND extent.video = win.video
    AND (%(kinds)s::text[] IS NULL OR extent.kind = ANY (%(kinds)s::text[]))
JOIN rushes_index.passage ON passage.owner = extent.owner AND passage.video = extent.video AND passage.kind = extent.kind
    AND passage.start_us >= win.first - longest_us AND passage.start_us < win.last
WHERE greatest(until_us, passage.start_us + 1) > win.first AND strpos(' ' || words, ' ' || %(first)s) > 0 LIMIT %(limit)s;

-- name: version
-- The version of the index that is there.
SELECT number FROM rushes_index.version;

-- name: keep_version
-- The version that was made.
INSERT INTO rushes_index.version VALUES (%(version)s);

-- name: lock
-- One process at a time makes the tables.
SELECT pg_advisory_xact_lock(7310031);

-- name: exists
-- Whether there is an index; asked of a table, because what the server remembers of names may be older than the lock.
SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'rushes_index' AND tablename = 'version');
