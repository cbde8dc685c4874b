-- Steering: commands, revival, results set aside, log lines.

-- name: worker_drain
-- A worker is told to stop claiming.
UPDATE rushes.worker SET draining = true WHERE number = %(number)s;

-- name: worker_leave
-- A worker has left: its row is over if it holds nothing, else only its lease, and the next sweep takes what it left.
UPDATE rushes.worker SET until = least(until, %(at)s), (over, freed) = (
    SELECT count(*) = 0, count(*) = 0 FROM rushes.task WHERE open AND task.worker = worker.number)
WHERE number = %(number)s;

-- name: park
-- Ready tasks of a job are parked or unparked.
UPDATE rushes.task SET parked = %(parked)s, open = NOT %(parked)s AND due IS NULL
WHERE key BETWEEN %(first)s AND %(last)s AND state = 'ready' AND worker IS NULL;

-- name: let_go
-- What is leased of a cancelled job is nobody's any more.
UPDATE rushes.task SET worker = NULL, parked = true, open = false, progress = 0
WHERE key BETWEEN %(first)s AND %(last)s AND worker IS NOT NULL;

-- name: rerank
-- A job's priority, on its tasks.
UPDATE rushes.task SET rank = %(rank)s WHERE key BETWEEN %(first)s AND %(last)s AND rank <> %(rank)s;

-- name: to_revive
-- Tasks that a revival means: dead ones; with `again` those that are done, without it those that back off.
SELECT task, id, state FROM rushes.task_row
WHERE task BETWEEN %(first)s AND %(last)s
    AND (state = 'dead' OR CASE WHEN %(again)s THEN state = 'done' ELSE due IS NOT NULL END)
    AND (%(stage)s = '' OR stage = %(stage)s) AND (%(every)s OR id = ANY (%(ids)s))
ORDER BY task;

-- name: end_wait
-- These tasks are due now.
UPDATE rushes.task SET due = NULL, open = state = 'ready' AND NOT parked WHERE key = ANY (%(keys)s);

-- name: revive
-- Dead tasks have fresh tries.
UPDATE rushes.task
SET state = 'waiting', failures = 0, losses = 0, due = NULL, finished = NULL, progress = 0, parked = false,
    open = false
WHERE key = ANY (%(keys)s);

-- name: undo
-- Tasks that were done have fresh tries.
INSERT INTO rushes.task (key, last, rank, state, fence, started, outcome, lane)
SELECT task, task, %(rank)s, 'waiting', fence, started, 'done', lane
FROM rushes.task_text JOIN LATERAL (
    SELECT fence, started, last FROM rushes.task_done WHERE first <= task ORDER BY first DESC LIMIT 1) AS done ON last >= task
WHERE task = ANY (%(keys)s);

-- name: undone
-- They are done no more; those that were done with them stay so.
WITH run AS (
    DELETE FROM rushes.task_done WHERE first IN (
        SELECT done.first FROM unnest(%(keys)s::bigint[]) AS key JOIN LATERAL (
            SELECT first, last FROM rushes.task_done WHERE first <= key ORDER BY first DESC LIMIT 1) AS done ON last >= key)
    RETURNING *
)
INSERT INTO rushes.task_done (first, last, started, finished, progress, fence, failures, losses, adopted)
SELECT key, key, started, finished, progress, fence, failures, losses, adopted
FROM run CROSS JOIN generate_series(first, last) AS key WHERE key <> ALL (%(keys)s);

-- name: rearming_jobs
-- Other jobs with tasks that need one of this job.
SELECT DISTINCT need.task >> 20 FROM rushes.need
WHERE ref BETWEEN %(first)s AND %(last)s AND NOT need.task BETWEEN %(first)s AND %(last)s;

-- name: rearm
-- Who has not begun waits again for a task of this job that is done no more; those of them that were ready.
WITH waiting AS (
    SELECT DISTINCT need.task FROM rushes.need
    WHERE ref BETWEEN %(first)s AND %(last)s
        AND coalesce((SELECT last FROM rushes.task_done WHERE first <= ref ORDER BY first DESC LIMIT 1) < ref, true)
), up AS (
    SELECT waiting.task, state = 'ready' AS was_ready, (
        (SELECT count(*) FROM rushes.need WHERE need.task = waiting.task
            AND coalesce((SELECT last FROM rushes.task_done WHERE first <= ref ORDER BY first DESC LIMIT 1) < ref, true))
        + (SELECT count(*) FROM rushes.need_key WHERE need_key.task = waiting.task AND NOT met))::integer AS n
    FROM waiting JOIN rushes.task ON key = waiting.task AND worker IS NULL
), counted AS (
    UPDATE rushes.task SET unmet = n, parked = false, due = NULL, open = false,
        state = CASE WHEN was_ready THEN 'waiting' ELSE state END
    FROM up WHERE key = up.task AND unmet <> n AND task.worker IS NULL RETURNING key, was_ready
)
SELECT key FROM counted WHERE was_ready;

-- name: revived_ready
-- Revived tasks without unmet needs are ready.
UPDATE rushes.task SET state = 'ready', parked = %(parked)s, open = NOT %(parked)s
WHERE key = ANY (%(keys)s) AND state = 'waiting' AND unmet = 0 RETURNING key;

-- name: set_aside
-- Results taken out, and why.
WITH gone AS (
    DELETE FROM rushes.result WHERE owner = %(owner)s AND key = ANY (%(keys)s) RETURNING owner, key
), kept AS (
    INSERT INTO rushes.aside (owner, key, at, reason) SELECT owner, key, %(at)s, %(reason)s FROM gone
    ON CONFLICT DO NOTHING
)
SELECT count(*) FROM gone;

-- name: log_add
-- Lines of an attempt.
INSERT INTO rushes.log (task, fence, line, at, text)
SELECT task_text.task, %(fence)s, line.number, %(at)s, line.text
FROM rushes.task_text CROSS JOIN unnest(%(numbers)s::integer[], %(lines)s::text[]) AS line(number, text)
WHERE task_text.id = %(task)s ON CONFLICT DO NOTHING;

-- name: log_trim
-- Only the last lines of an attempt are kept.
WITH mine AS (SELECT task FROM rushes.task_text WHERE id = %(task)s)
DELETE FROM rushes.log WHERE task = (SELECT task FROM mine) AND fence = %(fence)s AND line <= (
    SELECT max(line) FROM rushes.log WHERE task = (SELECT task FROM mine) AND fence = %(fence)s) - %(keep)s;
