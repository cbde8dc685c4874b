-- name: cursor
-- A cursor that was kept.
SELECT value FROM cursor WHERE name = ?;

-- name: keep_cursor
-- Keep a cursor.
INSERT INTO cursor VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value;

-- name: queue
-- A job with something new to read.
INSERT INTO job (id, queued) VALUES (?, 1) ON CONFLICT DO UPDATE SET queued = 1;

-- name: queued
-- Jobs still to be read.
SELECT id, number FROM job WHERE queued ORDER BY id LIMIT ?;

-- name: met
-- A job was read up to an event.
INSERT INTO job (id, number) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET number = max(number, ?2), queued = 0;

-- name: run
-- A job of a video as it is now.
INSERT INTO run VALUES (:job, :owner, :video, :recipe, :state, :created_at, :facts)
ON CONFLICT DO UPDATE SET state = excluded.state, facts = excluded.facts;

-- name: video_row
-- A video with the time of its first run and what its newest run found; its choice is open.
INSERT INTO video (owner, id, added_at, duration_us, name, path, shot_at)
SELECT owner, video, min(created_at), :duration_us, :name, :path, :shot_at FROM run WHERE owner = :owner AND video = :video
ON CONFLICT DO UPDATE SET added_at = excluded.added_at, duration_us = excluded.duration_us, name = excluded.name,
    path = excluded.path, shot_at = excluded.shot_at, settled = 0;

-- name: offer
-- Observations of one kind that a run offers.
INSERT INTO offer VALUES (:owner, :video, :job, :stage, :chunk, :kind, :key, :manifest, :profile)
ON CONFLICT DO UPDATE SET manifest = excluded.manifest, profile = excluded.profile;

-- name: publish
-- A published name of a video and the result that made it.
INSERT INTO published VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET key = excluded.key;

-- name: rate
-- How long a task took; the same task again replaces it.
INSERT INTO rate VALUES (:task, :stage, :machine, :seconds, :media_seconds, :pixels, :at, :size, :voiced_seconds)
ON CONFLICT DO UPDATE SET seconds = excluded.seconds, machine = excluded.machine, at = excluded.at,
    size = excluded.size, voiced_seconds = excluded.voiced_seconds;

-- name: rename
-- The name that a person gave.
INSERT INTO renamed VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET name = excluded.name;

-- name: unname
-- Take it back.
DELETE FROM renamed WHERE owner = ? AND video = ?;

-- name: unsettled
-- Videos whose choice of shown results is open.
SELECT owner, id FROM video WHERE NOT settled ORDER BY owner, id;

-- name: offers
-- Everything that runs offer of a video.
SELECT offer.*, run.created_at FROM offer JOIN run USING (job) WHERE offer.owner = ? AND offer.video = ?;

-- name: shown
-- What readers see of a video.
SELECT kind, key, manifest FROM shown WHERE owner = ? AND video = ?;

-- name: drop_lines
-- One result's lines.
DELETE FROM line WHERE owner = ? AND video = ? AND kind = ? AND key = ?;

-- name: drop_shown
-- One result is no longer shown.
DELETE FROM shown WHERE owner = ? AND video = ? AND kind = ? AND key = ?;

-- name: add_shown
-- One result is shown.
INSERT INTO shown VALUES (:owner, :video, :kind, :key, :manifest);

-- name: add_line
-- One observation.
INSERT INTO line (owner, video, kind, key, n, start_us, end_us, language, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: corrections
-- What people said instead in one video.
SELECT id, video, kind, start_us, end_us, text FROM correction WHERE owner = ? AND video = ? AND kind = ?;

-- name: correction
-- Where a correction stands.
SELECT video, kind FROM correction WHERE owner = ? AND id = ?;

-- name: correct
-- What a person said instead.
INSERT INTO correction (owner, video, kind, id, start_us, end_us, text) VALUES (:owner, :video, :kind, :id, :start_us, :end_us, :text)
ON CONFLICT DO UPDATE SET video = excluded.video, kind = excluded.kind, start_us = excluded.start_us,
    end_us = excluded.end_us, text = excluded.text;

-- name: take_back
-- A correction is taken back.
DELETE FROM correction WHERE owner = ? AND id = ?;

-- name: drop_words
-- The words of a video's moments of one kind.
INSERT INTO word (word, rowid, kind, words)
SELECT 'delete', id, kind, words FROM moment WHERE owner = ? AND video = ? AND kind = ?;

-- name: drop_moments
-- A video's moments of one kind.
DELETE FROM moment WHERE owner = ? AND video = ? AND kind = ?;

-- name: add_moment
-- One moment.
INSERT INTO moment (owner, video, kind, start_us, end_us, until_us, language, confidence, text, words, times)
VALUES (:owner, :video, :kind, :start_us, :end_us, :until_us, :language, :confidence, :text, :words, :times);

-- name: add_words
-- The words of a video's moments of one kind.
INSERT INTO word (rowid, kind, words) SELECT id, kind, words FROM moment WHERE owner = ? AND video = ? AND kind = ?;

-- name: extent
-- How long they are at most.
INSERT INTO extent SELECT owner, video, kind, max(until_us - start_us) FROM moment
WHERE owner = ? AND video = ? AND kind = ? GROUP BY owner, video, kind
ON CONFLICT DO UPDATE SET longest_us = excluded.longest_us;

-- name: unsettle
-- The choice of a video, or of all of an owner, is open.
UPDATE video SET settled = 0 WHERE owner = ?1 AND ?2 IN ('', id);

-- name: drop_tracks
-- The faces of a video.
DELETE FROM track WHERE owner = ? AND video = ?;

-- name: add_track
-- A face of a video.
INSERT INTO track (owner, video, n, doc, direction) VALUES (?, ?, ?, ?, ?);

-- name: tracks
-- Every face of an owner.
SELECT video, doc, direction FROM track WHERE owner = ? ORDER BY video, n;

-- name: settle
-- The choice is made; languages by how many lines there are of each.
UPDATE video SET settled = 1, languages = (
    SELECT json_group_array(language) FROM (
        SELECT language FROM line WHERE owner = ?1 AND video = ?2 AND language != ''
        GROUP BY language ORDER BY count(*) DESC, language))
WHERE owner = ?1 AND id = ?2;

-- name: keys
-- Every result that is offered or has made a name.
SELECT owner, key FROM offer WHERE ?1 IN ('', owner) UNION SELECT owner, key FROM published WHERE ?1 IN ('', owner);

-- name: unsettle_key
-- Videos that a result was offered for are to be settled again.
UPDATE video SET settled = 0 WHERE owner = ?1 AND id IN (SELECT video FROM offer WHERE owner = ?1 AND key = ?2);

-- name: forget_offer
-- A result offers nothing any more.
DELETE FROM offer WHERE owner = ? AND key = ?;

-- name: forget_name
-- Its published names are gone.
DELETE FROM published WHERE owner = ? AND key = ?;

-- name: gone_words
-- The words of a video that is gone.
INSERT INTO word (word, rowid, kind, words)
SELECT 'delete', id, kind, words FROM moment WHERE owner = ? AND video = ?;

-- name: gone_moments
-- Its moments.
DELETE FROM moment WHERE owner = ? AND video = ?;

-- name: gone_lines
-- Its lines.
DELETE FROM line WHERE owner = ? AND video = ?;

-- name: gone_shown
-- What readers saw of it.
DELETE FROM shown WHERE owner = ? AND video = ?;

-- name: gone_offers
-- What its runs offered.
DELETE FROM offer WHERE owner = ? AND video = ?;

-- name: gone_names
-- Its published names.
DELETE FROM published WHERE owner = ? AND video = ?;

-- name: gone_extents
-- How long its moments were.
DELETE FROM extent WHERE owner = ? AND video = ?;

-- name: gone_met
-- How far its jobs were read.
DELETE FROM job WHERE id IN (SELECT job FROM run WHERE owner = ? AND video = ?);

-- name: gone_runs
-- Its jobs.
DELETE FROM run WHERE owner = ? AND video = ?;

-- name: gone_video
-- The video itself.
DELETE FROM video WHERE owner = ? AND id = ?;

-- name: lines
-- Observations of one kind in order of time.
SELECT doc FROM line WHERE owner = ? AND video = ? AND kind = ? ORDER BY start_us, end_us, key, n;

-- name: rates
-- The latest rates; one whose machine is not known any more counts for each.
SELECT task, stage, machine, seconds, media_seconds, pixels, at, size, voiced_seconds FROM rate
WHERE stage = ? AND machine IN (?, '') ORDER BY at DESC, task LIMIT ?;

-- name: newest_run
-- The newest run of a video.
SELECT * FROM run WHERE owner = ? AND video = ? ORDER BY created_at DESC, job DESC LIMIT 1;

-- name: videos
-- An owner's videos after a place in the list, newest first; no OR, which would read every page before it.
SELECT owner, id, added_at, duration_us, languages,
    (SELECT name FROM renamed WHERE renamed.owner = video.owner AND renamed.video = id),
    (SELECT json_group_array(name) FROM (SELECT name FROM published
        WHERE published.owner = video.owner AND published.video = id ORDER BY name)),
    (SELECT json_group_array(json_array(job, recipe, state, facts)) FROM (SELECT job, recipe, state, facts FROM run
        WHERE run.owner = video.owner AND run.video = id ORDER BY created_at DESC, job DESC))
FROM video WHERE owner = :owner AND (added_at, id) < (:added_at, :after) ORDER BY added_at DESC, id DESC LIMIT :limit;

-- name: videos_some
-- Some of them, by their ids.
SELECT owner, video.id, added_at, duration_us, languages,
    (SELECT name FROM renamed WHERE renamed.owner = video.owner AND renamed.video = video.id),
    (SELECT json_group_array(name) FROM (SELECT name FROM published
        WHERE published.owner = video.owner AND published.video = video.id ORDER BY name)),
    (SELECT json_group_array(json_array(job, recipe, state, facts)) FROM (SELECT job, recipe, state, facts FROM run
        WHERE run.owner = video.owner AND run.video = video.id ORDER BY created_at DESC, job DESC))
FROM json_each(:ids) CROSS JOIN video ON owner = :owner AND video.id = json_each.value ORDER BY added_at DESC, video.id DESC;

-- name: summary
-- How many videos, and how long they are together.
SELECT count(*), coalesce(sum(duration_us), 0) FROM video WHERE owner = ?;

-- name: summary_lines
-- How many lines there are of each kind and language.
SELECT kind, language, count(*) FROM line WHERE owner = ? GROUP BY kind, language;

-- name: summary_labels
-- The most frequent texts of one kind.
SELECT text, count(*) FROM moment WHERE owner = ? AND kind = ? GROUP BY text ORDER BY count(*) DESC, text LIMIT ?;

-- name: shelf
-- Every video of an owner under the name that it goes by.
SELECT video.id, video.name, video.path, CASE video.shot_at WHEN '' THEN video.added_at ELSE video.shot_at END, renamed.name
FROM video LEFT JOIN renamed ON renamed.owner = video.owner AND renamed.video = video.id WHERE video.owner = :owner;

-- name: shelf_some
-- Some of them: what a search has found, however many there are.
SELECT video.id, video.name, video.path, CASE video.shot_at WHEN '' THEN video.added_at ELSE video.shot_at END, renamed.name
FROM json_each(:videos) CROSS JOIN video ON video.owner = :owner AND video.id = json_each.value
LEFT JOIN renamed ON renamed.owner = video.owner AND renamed.video = video.id;

-- name: count
-- How many moments hold some words, up to a number. CROSS JOIN keeps the order: words first, then their moments.
SELECT count(*) FROM (SELECT 1 FROM word CROSS JOIN moment ON moment.id = word.rowid
WHERE word MATCH :match AND moment.owner = :owner LIMIT :most);

-- name: find
-- Moments that hold some words.
SELECT moment.id, video, moment.kind, start_us, end_us, until_us, language, confidence, text, moment.words, times
FROM word CROSS JOIN moment ON moment.id = word.rowid
WHERE word MATCH :match AND moment.owner = :owner
    AND (:videos IS NULL OR moment.video IN (SELECT value FROM json_each(:videos))) LIMIT :most;

-- name: count_any
-- How many moments of some kinds there are, up to a number.
SELECT count(*) FROM (SELECT 1 FROM moment WHERE owner = :owner
AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds))) LIMIT :most);

-- name: find_any
-- Moments of some kinds, whatever their words.
SELECT id, video, kind, start_us, end_us, until_us, language, confidence, text, words, times FROM moment
WHERE owner = :owner AND video IN (SELECT value FROM json_each(coalesce(:videos, (SELECT json_group_array(id) FROM video WHERE owner = :owner))))
    AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds))) LIMIT :most;

-- name: around
-- Moments of some kinds that are there in a window: those of each kind that begin early enough to last until it.
SELECT moment.id, moment.video, moment.kind, moment.start_us, end_us, until_us, language, confidence, text, words, times
FROM json_each(:windows) AS win
CROSS JOIN extent ON extent.owner = :owner AND extent.video = win.value ->> 0
    AND (:kinds IS NULL OR extent.kind IN (SELECT value FROM json_each(:kinds)))
CROSS JOIN moment ON moment.owner = extent.owner AND moment.video = extent.video AND moment.kind = extent.kind
    AND moment.start_us >= (win.value ->> 1) - extent.longest_us AND moment.start_us < win.value ->> 2
WHERE max(moment.until_us, moment.start_us + 1) > win.value ->> 1 AND instr(' ' || words, ' ' || :first);
