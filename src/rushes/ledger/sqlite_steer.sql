-- Steering: commands, revival, log lines, moving in.

-- name: worker_drain
-- A worker is told to stop claiming.
UPDATE worker SET draining = 1 WHERE number = ?;

-- name: worker_end
-- A worker has left: its lease is over now.
UPDATE worker SET until = min(until, ?) WHERE number = ?;

-- name: worker_holds
-- Whether a worker holds a task.
SELECT 1 FROM hold CROSS JOIN task ON key BETWEEN first AND last AND +task.worker = hold.worker AND +state = 'leased'
WHERE hold.worker = ? LIMIT 1;

-- name: job_park
-- Ready tasks of a job are parked or unparked.
UPDATE task SET parked = ? WHERE key BETWEEN ? AND ? AND state = 'ready';

-- name: job_let_go
-- What is leased of a cancelled job is nobody's any more.
UPDATE task SET state = 'ready', worker = NULL, parked = 1, progress = 0 WHERE key BETWEEN ? AND ? AND state = 'leased';

-- name: job_rank
-- A job's priority, on its tasks.
UPDATE task SET rank = ? WHERE key BETWEEN ? AND ? AND rank <> ?;

-- name: to_revive
-- Tasks that a revival means: dead ones; with `again` those that are done, without it those that back off.
SELECT key, id, state FROM task JOIN task_text ON task_text.task = task.key
WHERE key BETWEEN ?1 AND ?2 AND (state = 'dead' OR CASE WHEN ?3 THEN state = 'done' ELSE due IS NOT NULL END)
    AND (?4 = '' OR stage = ?4)
    AND (?5 = '[]' OR id IN (SELECT value FROM json_each(?5)))
ORDER BY key;

-- name: end_wait
-- These tasks are due now.
UPDATE task SET due = NULL WHERE key IN (SELECT value FROM json_each(?));

-- name: revive
-- These tasks have fresh tries.
UPDATE task SET state = 'waiting', failures = 0, losses = 0, due = NULL, progress = 0
WHERE key IN (SELECT value FROM json_each(?));

-- name: keep
-- What needed these tasks has had them.
UPDATE need SET kept = 1 WHERE ref IN (SELECT value FROM json_each(?));

-- name: rearm
-- Who has not begun waits again for a task of this job that is done no more.
UPDATE need SET kept = 0
WHERE kept AND ref BETWEEN ? AND ? AND (SELECT state FROM task WHERE task.key = need.ref) <> 'done'
    AND (SELECT state FROM task WHERE task.key = need.task) IN ('waiting', 'ready', 'dead')
RETURNING task;

-- name: count_up
-- The counts of dependants follow their needs; one that was ready waits.
UPDATE task SET unmet = unmet + up.n, parked = 0, due = NULL,
    state = CASE WHEN state = 'ready' THEN 'waiting' ELSE state END
FROM (SELECT value ->> 0 AS key, value ->> 1 AS n FROM json_each(?)) AS up
WHERE task.key = up.key;

-- name: ready_of
-- Which of these dependants are ready now.
SELECT key FROM task WHERE key IN (SELECT value FROM json_each(?)) AND state = 'ready';

-- name: revived_ready
-- Revived tasks without unmet needs are ready.
UPDATE task SET state = 'ready', parked = ?
WHERE key IN (SELECT value FROM json_each(?)) AND state = 'waiting' AND unmet = 0
RETURNING key;

-- name: log_add
-- One line of an attempt.
INSERT INTO log (task, fence, line, at, text) SELECT task, ?, ?, ?, ? FROM task_text WHERE id = ? ON CONFLICT DO NOTHING;

-- name: log_trim
-- Only the last lines of an attempt are kept.
DELETE FROM log WHERE task = (SELECT task FROM task_text WHERE id = ?1) AND fence = ?2
    AND line <= (SELECT max(line) FROM log WHERE task = (SELECT task FROM task_text WHERE id = ?1) AND fence = ?2) - ?3;

-- name: meta_get
-- A fact about the home.
SELECT value FROM meta WHERE name = ?;

-- name: meta_set
-- Keep a fact about the home.
INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value;

-- name: left_behind
-- Workers whose rows another machine left behind.
SELECT id FROM worker WHERE NOT over;

-- name: all_over
-- No worker of before can still be here.
UPDATE worker SET until = 0 WHERE NOT over;

-- name: all_due
-- Times of another boot mean nothing here: what waits for one is due.
UPDATE task SET due = 0 WHERE due IS NOT NULL;
