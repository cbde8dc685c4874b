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
-- A video with the time of its first run and the length that its newest run found; its choice is open.
INSERT INTO video (owner, id, added_at, duration_us)
SELECT owner, video, min(created_at), :duration_us FROM run WHERE owner = :owner AND video = :video
ON CONFLICT DO UPDATE SET added_at = excluded.added_at, duration_us = excluded.duration_us, settled = 0;

-- name: offer
-- Observations of one kind that a run offers.
INSERT INTO offer VALUES (:owner, :video, :job, :stage, :chunk, :kind, :key, :manifest)
ON CONFLICT DO UPDATE SET manifest = excluded.manifest;

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

-- name: drop_words
-- The words of one result's lines.
DELETE FROM word WHERE rowid IN (SELECT id FROM line WHERE owner = ? AND video = ? AND kind = ? AND key = ?);

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

-- name: add_words
-- The words of one line.
INSERT INTO word (rowid, kind, words) VALUES (?, ?, ?);

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

-- name: lines
-- Observations of one kind in order of time.
SELECT doc FROM line WHERE owner = ? AND video = ? AND kind = ? ORDER BY start_us, end_us, key, n;

-- name: rates
-- The latest rates; one whose machine is not known any more counts for each.
SELECT task, stage, machine, seconds, media_seconds, pixels, at, size, voiced_seconds FROM rate
WHERE stage = ? AND machine IN (?, '') ORDER BY at DESC, task LIMIT ?;

-- name: video_list
-- An owner's videos after a place in the list, newest first.
SELECT * FROM video WHERE owner = ?1 AND (?2 = '' OR (added_at, id) < (?2, ?3)) ORDER BY added_at DESC, id DESC LIMIT ?4;

-- name: video
-- One video.
SELECT * FROM video WHERE owner = ? AND id = ?;

-- name: runs
-- The runs of a video, newest first.
SELECT * FROM run WHERE owner = ? AND video = ? ORDER BY created_at DESC, job DESC;

-- name: renamed
-- The name that a person gave a video.
SELECT name FROM renamed WHERE owner = ? AND video = ?;

-- name: published
-- Published names of a video.
SELECT name FROM published WHERE owner = ? AND video = ? ORDER BY name;

-- name: summary
-- How many videos, and how long they are together.
SELECT count(*), coalesce(sum(duration_us), 0) FROM video WHERE owner = ?;

-- name: summary_lines
-- How many lines there are of each kind and language.
SELECT kind, language, count(*) FROM line WHERE owner = ? GROUP BY kind, language;

-- name: count_hits
-- How many lines match, in how many videos. CROSS JOIN keeps the order: words first, then their lines.
SELECT count(*), count(DISTINCT line.video) FROM word CROSS JOIN line ON line.id = word.rowid
WHERE word MATCH :match AND line.owner = :owner AND :video IN ('', line.video);

-- name: search
-- Lines that match after a place in the answer: best first, then by video and time.
SELECT * FROM (
    SELECT round(bm25(word, 0.0, 1.0), 12) AS score, line.video, line.start_us, line.end_us, line.kind, line.key, line.n, line.doc
    FROM word CROSS JOIN line ON line.id = word.rowid
    WHERE word MATCH :match AND line.owner = :owner AND :video IN ('', line.video))
WHERE :after IS NULL OR (score, video, start_us, end_us, kind, key, n)
    > (:score, :at_video, :start_us, :end_us, :at_kind, :at_key, :at_n)
ORDER BY score, video, start_us, end_us, kind, key, n LIMIT :limit;
