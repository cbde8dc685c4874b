-- name: cursor
-- A cursor that was kept.
SELECT value FROM cursor WHERE name = :name;

-- name: keep_cursor
-- Keep a cursor.
INSERT INTO cursor VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: queue_jobs
-- Jobs with something new to read.
INSERT INTO job (id, queued) SELECT value, 1 FROM json_each(:jobs) WHERE true ON CONFLICT (id) DO UPDATE SET queued = 1;

-- name: backlog_jobs
-- Jobs still to be read.
SELECT id, number FROM job WHERE queued ORDER BY id LIMIT :limit;

-- name: backlog_videos
-- Videos whose shown results are still to be selected.
SELECT owner, id FROM video WHERE NOT selected ORDER BY owner, id;

-- name: job_read
-- A job was read up to an event.
INSERT INTO job (id, number) VALUES (:job, :number)
ON CONFLICT (id) DO UPDATE SET number = max(job.number, excluded.number), queued = 0;

-- name: run
-- A job of a video as it is now.
INSERT INTO run VALUES (:job, :owner, :video, :recipe, :state, :created_at, :facts)
ON CONFLICT (job) DO UPDATE SET state = excluded.state, facts = excluded.facts;

-- name: newest_facts
-- What the newest run of a video found.
SELECT facts FROM run WHERE owner = :owner AND video = :video ORDER BY created_at DESC, job DESC LIMIT 1;

-- name: video
-- A video with the time of its first run and what its newest run found; it is to be selected again.
INSERT INTO video (owner, id, added_at, duration_us, name, path, shot_at)
SELECT owner, video, min(created_at), :duration_us, :name, :path, :shot_at FROM run
WHERE owner = :owner AND video = :video GROUP BY owner, video
ON CONFLICT (owner, id) DO UPDATE SET added_at = excluded.added_at, duration_us = excluded.duration_us,
    name = excluded.name, path = excluded.path, shot_at = excluded.shot_at, selected = 0;

-- name: add_result
-- Observations of one kind in a result of a run.
INSERT INTO result VALUES (:owner, :video, :job, :stage, :chunk, :kind, :key, :manifest, :profile)
ON CONFLICT (owner, video, job, kind, key) DO UPDATE SET manifest = excluded.manifest, profile = excluded.profile;

-- name: publish
-- A published name of a video and the result that made it.
INSERT INTO published VALUES (:owner, :video, :name, :key)
ON CONFLICT (owner, video, name) DO UPDATE SET key = excluded.key;

-- name: rename
-- The name that a person gave.
INSERT INTO renamed VALUES (:owner, :video, :name) ON CONFLICT (owner, video) DO UPDATE SET name = excluded.name;

-- name: unname
-- Take it back.
DELETE FROM renamed WHERE owner = :owner AND video = :video;

-- name: video_name
-- A video's name in its file, the one that a person gave, and how long it is.
SELECT video.name, renamed.name, duration_us FROM video LEFT JOIN renamed ON renamed.owner = video.owner AND renamed.video = id
WHERE video.owner = :owner AND id = :video;

-- name: results
-- Results of a video's runs, each with the time of its run.
SELECT result.*, run.created_at FROM result JOIN run USING (job)
WHERE result.owner = :owner AND result.video = :video;

-- name: shown
-- What readers see of a video.
SELECT kind, key, manifest FROM shown WHERE owner = :owner AND video = :video;

-- name: published
-- Published names of a video.
SELECT name, key FROM published WHERE owner = :owner AND video = :video;

-- name: drop_lines
-- The lines of one result.
DELETE FROM line WHERE owner = :owner AND video = :video AND kind = :kind AND key = :key;

-- name: hide
-- One result is no longer shown.
DELETE FROM shown WHERE owner = :owner AND video = :video AND kind = :kind AND key = :key;

-- name: show
-- One result is shown.
INSERT INTO shown VALUES (:owner, :video, :kind, :key, :manifest);

-- name: add_line
-- One observation.
INSERT INTO line (owner, video, kind, key, n, start_us, end_us, language, doc)
VALUES (:owner, :video, :kind, :key, :n, :start_us, :end_us, :language, :doc);

-- name: selected
-- A video is selected; its languages by how many lines there are of each.
UPDATE video SET selected = 1, languages = (
    SELECT json_group_array(language) FROM (
        SELECT language FROM line WHERE owner = :owner AND video = :video AND language != ''
        GROUP BY language ORDER BY count(*) DESC, language))
WHERE owner = :owner AND id = :video;

-- name: reselect
-- A video, or all of an owner, is to be selected again.
UPDATE video SET selected = 0 WHERE owner = :owner AND :video IN ('', id);

-- name: corrections
-- What people said instead in one video.
SELECT id, video, kind, start_us, end_us, text FROM correction
WHERE owner = :owner AND video = :video AND kind = :kind;

-- name: add_correction
-- What a person said instead.
INSERT INTO correction (owner, video, kind, id, start_us, end_us, text)
VALUES (:owner, :video, :kind, :id, :start_us, :end_us, :text);

-- name: remove_correction
-- A correction is taken back; where it was.
DELETE FROM correction WHERE owner = :owner AND id = :id RETURNING video, kind;

-- name: drop_passages
-- The passages of a video of one kind.
DELETE FROM passage WHERE owner = :owner AND video = :video AND kind = :kind;

-- name: add_passage
-- One passage.
INSERT INTO passage
    (owner, video, kind, start_us, end_us, until_us, language, confidence, text, words, times)
VALUES (:owner, :video, :kind, :start_us, :end_us, :until_us, :language, :confidence, :text, :words, :times);

-- name: extent
-- How long the passages of a video of one kind are at most.
INSERT INTO extent SELECT owner, video, kind, max(until_us - start_us) FROM passage
WHERE owner = :owner AND video = :video AND kind = :kind GROUP BY owner, video, kind
ON CONFLICT (owner, video, kind) DO UPDATE SET longest_us = excluded.longest_us;

-- name: add_track
-- A face of a video.
INSERT INTO track VALUES (:owner, :video, :n, :doc, :embedding);

-- name: tracks
-- Every face of an owner.
SELECT video, doc, embedding FROM track WHERE owner = :owner ORDER BY video, n;

-- name: reselect_videos_of
-- Videos of some results are to be selected again.
UPDATE video SET selected = 0
WHERE owner = :owner AND id IN (SELECT video FROM result WHERE owner = :owner AND key IN (SELECT value FROM json_each(:keys)));

-- name: remove_results
-- Some results are not offered any more.
DELETE FROM result WHERE owner = :owner AND key IN (SELECT value FROM json_each(:keys));

-- name: remove_published
-- Nor are their published names.
DELETE FROM published WHERE owner = :owner AND key IN (SELECT value FROM json_each(:keys));

-- name: drop_passages_of_video
-- Its passages.
DELETE FROM passage WHERE owner = :owner AND video = :video;

-- name: drop_lines_of_video
-- Its lines.
DELETE FROM line WHERE owner = :owner AND video = :video;

-- name: drop_shown_of_video
-- What readers saw of it.
DELETE FROM shown WHERE owner = :owner AND video = :video;

-- name: drop_results_of_video
-- Results of its runs.
DELETE FROM result WHERE owner = :owner AND video = :video;

-- name: drop_published_of_video
-- Its published names.
DELETE FROM published WHERE owner = :owner AND video = :video;

-- name: drop_extents_of_video
-- How long its passages were.
DELETE FROM extent WHERE owner = :owner AND video = :video;

-- name: drop_tracks_of_video
-- The faces of a video.
DELETE FROM track WHERE owner = :owner AND video = :video;

-- name: drop_jobs_of_video
-- How far its jobs were read.
DELETE FROM job WHERE id IN (SELECT job FROM run WHERE owner = :owner AND video = :video);

-- name: drop_runs_of_video
-- Its runs.
DELETE FROM run WHERE owner = :owner AND video = :video;

-- name: drop_video_of_video
-- The video itself.
DELETE FROM video WHERE owner = :owner AND id = :video;

-- name: lines
-- Observations of one kind in order of time.
SELECT doc FROM line WHERE owner = :owner AND video = :video AND kind = :kind ORDER BY start_us, end_us, key, n;

-- name: videos
-- Videos of an owner after a position in the list, newest first; no OR, which would read every page before it.
SELECT * FROM listed_video WHERE owner = :owner AND (added_at, id) < (:added_at, :after)
ORDER BY added_at DESC, id DESC LIMIT :limit;

-- name: videos_by_id
-- Some of them.
SELECT listed_video.* FROM json_each(:ids) AS wanted CROSS JOIN listed_video
ON listed_video.owner = :owner AND listed_video.id = wanted.value ORDER BY added_at DESC, listed_video.id DESC;

-- name: catalog
-- Names and dates of an owner's videos.
SELECT id, name, path, at, renamed FROM catalog WHERE owner = :owner;

-- name: catalog_by_id
-- Some of them: those that a search has found, however many there are.
SELECT catalog.id, name, catalog.path, at, renamed FROM json_each(:ids) AS wanted CROSS JOIN catalog
ON owner = :owner AND catalog.id = wanted.value;

-- name: summary
-- How many videos, and how long they are together.
SELECT count(*), coalesce(sum(duration_us), 0) FROM video WHERE owner = :owner;

-- name: summary_lines
-- How many lines there are of each kind and language.
SELECT kind, language, count(*) FROM line WHERE owner = :owner GROUP BY kind, language;

-- name: summary_labels
-- The most frequent texts of one kind.
SELECT text, count(*) FROM passage WHERE owner = :owner AND kind = :kind
GROUP BY text ORDER BY count(*) DESC, text LIMIT :limit;

-- name: count
-- How many passages hold some words, up to a number. CROSS JOIN keeps the order: words first, then their passages.
SELECT count(*) FROM (SELECT 1 FROM passage_text CROSS JOIN passage ON passage.id = passage_text.rowid
WHERE passage_text MATCH :query AND passage.owner = :owner LIMIT :limit);

-- name: find
-- Passages that hold some words.
SELECT passage.id, video, passage.kind, start_us, end_us, until_us, language, confidence, text, passage.words, times
FROM passage_text CROSS JOIN passage ON passage.id = passage_text.rowid
WHERE passage_text MATCH :query AND passage.owner = :owner
    AND (:videos IS NULL OR passage.video IN (SELECT value FROM json_each(:videos))) LIMIT :limit;

-- name: count_any
-- How many passages of some kinds there are, up to a number.
SELECT count(*) FROM (SELECT 1 FROM passage WHERE owner = :owner
AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds))) LIMIT :limit);

-- name: find_any
-- Passages of some kinds, whatever their words.
SELECT id, video, kind, start_us, end_us, until_us, language, confidence, text, words, times FROM passage
WHERE owner = :owner AND video IN (SELECT value FROM json_each(coalesce(:videos, (SELECT json_group_array(id) FROM video WHERE owner = :owner))))
    AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds))) LIMIT :limit;

-- name: find_in_windows
-- Passages of some kinds that are there in a window: those of each kind that begin early enough to last until it.
SELECT passage.id, passage.video, passage.kind, passage.start_us, end_us, until_us, language, confidence, text, words, times
FROM json_each(:windows) AS win
CROSS JOIN extent ON extent.owner = :owner AND extent.video = win.value ->> 0
    AND (:kinds IS NULL OR extent.kind IN (SELECT value FROM json_each(:kinds)))
CROSS JOIN passage ON passage.owner = extent.owner AND passage.video = extent.video AND passage.kind = extent.kind
    AND passage.start_us >= (win.value ->> 1) - extent.longest_us AND passage.start_us < win.value ->> 2
WHERE max(passage.until_us, passage.start_us + 1) > win.value ->> 1 AND instr(' ' || words, ' ' || :first) LIMIT :limit;
