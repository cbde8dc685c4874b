-- Working: claims, leases, outcomes, sweeps.

-- name: worker_row
-- A worker's own row.
SELECT number, until, over, draining FROM worker WHERE id = ?;

-- name: worker_enter
-- A new incarnation.
INSERT INTO worker (id, until, note, started, seen, host, boot, pid, pid_start, lanes, slots, machine, version)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: worker_keep
-- Another lease for a worker.
UPDATE worker SET until = ?, note = ?, seen = ? WHERE number = ?;

-- name: to_claim
-- Ready tasks of a lane in the order in which they are taken: priority, age of the job, plan order.
SELECT key, id, fence + 1, stage, chunk, spec
FROM task CROSS JOIN task_text ON task_text.task = task.key
WHERE state = 'ready' AND parked = 0 AND due IS NULL AND lane = ?
ORDER BY rank, key LIMIT ?;

-- name: to_claim_in
-- The same in several lanes: the first of each, and of these the first.
SELECT key, id, fence + 1, stage, chunk, spec, lane
FROM task CROSS JOIN task_text ON task_text.task = task.key
WHERE task.key IN (
    SELECT best.key FROM json_each(?1) AS asked CROSS JOIN task AS best ON best.key IN (
        SELECT key FROM task WHERE state = 'ready' AND parked = 0 AND due IS NULL AND lane = asked.value
        ORDER BY rank, key LIMIT ?2))
ORDER BY rank, key LIMIT ?2;

-- name: to_claim_of
-- The same among tasks that were hinted at.
SELECT key, id, fence + 1, stage, chunk, spec, lane
FROM task_text CROSS JOIN task ON task.key = task_text.task
WHERE task_text.id IN (SELECT value FROM json_each(?)) AND +state = 'ready' AND +parked = 0 AND due IS NULL
    AND +lane IN (SELECT value FROM json_each(?))
ORDER BY rank, key LIMIT ?;

-- name: before
-- How often tasks failed and were lost, in the order asked.
SELECT failures, losses FROM json_each(?) AS asked CROSS JOIN task ON task.key = asked.value;

-- name: claimable
-- Whether a lane has a ready task.
SELECT 1 FROM task WHERE state = 'ready' AND parked = 0 AND due IS NULL AND lane = ? LIMIT 1;

-- name: claim
-- Lease a range of tasks to a worker, each with the next fence.
UPDATE task SET state = 'leased', worker = ?, fence = fence + 1, started = ?, outcome = NULL, progress = 0
WHERE key BETWEEN ? AND ?;

-- name: hold_add
-- Where those leases lie.
INSERT INTO hold (worker, first, last) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: hold_drop
-- A range whose tasks are done.
DELETE FROM hold WHERE worker = ? AND first = ? AND last = ?;

-- name: hold_trim
-- Ranges of a worker in which it holds nothing any more.
DELETE FROM hold WHERE worker = ? AND NOT EXISTS (SELECT 1 FROM task
    WHERE key BETWEEN hold.first AND hold.last AND +task.worker = hold.worker AND +state = 'leased');

-- name: hold_forget
-- Ranges of workers that are over and were released.
DELETE FROM hold WHERE worker IN (SELECT number FROM worker WHERE over);

-- name: keys
-- The keys of tasks.
SELECT id, task FROM task_text WHERE id IN (SELECT value FROM json_each(?));

-- name: holds
-- Which of these tasks are still leased to this worker, and at which fence.
SELECT key, fence FROM task WHERE key IN (SELECT value FROM json_each(?)) AND +worker = ? AND +state = 'leased';

-- name: finish
-- A range of tasks is done, where the lease is still this worker's at this fence.
UPDATE task SET state = 'done', outcome = ?, finished = ?
WHERE key BETWEEN ? AND ? AND +fence = ? AND +worker = ? AND +state = 'leased';

-- name: mark
-- A point to come back to within the transaction.
SAVEPOINT mark;

-- name: back
-- Come back to it.
ROLLBACK TO mark;

-- name: unmark
-- It is needed no more: as long as it is there, a page is copied before it is written.
RELEASE mark;

-- name: dependants
-- Who waits for tasks of these ranges, once for each need; as one text, because to group them here is to sort them.
SELECT group_concat(task) FROM json_each(?) AS run CROSS JOIN need ON ref BETWEEN run.value ->> 0 AND run.value ->> 1
WHERE NOT kept;

-- name: count_down
-- The counts of dependants follow their needs; at none left a waiting one is ready.
UPDATE task SET unmet = unmet - down.n,
    state = CASE WHEN state = 'waiting' AND unmet = down.n THEN 'ready' ELSE state END
FROM (SELECT value ->> 0 AS key, value ->> 1 AS n FROM json_each(?)) AS down
WHERE task.key = down.key
RETURNING task.key, (SELECT id FROM task_text WHERE task_text.task = task.key), task.state;

-- name: park
-- Ready tasks of a stopped job are out of sight of claims.
UPDATE task SET parked = 1 WHERE key IN (SELECT value FROM json_each(?));

-- name: debt_add
-- Published names that are still to be made.
INSERT INTO debt (owner, job, key) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: standing
-- Where tasks stand, for an answer about a fence.
SELECT task_text.id, task.key, task.state, task.fence, task.outcome, worker.id, job.cancelled, job.paused,
    task_text.stage, task_text.chunk, task.losses
FROM task_text CROSS JOIN task ON task.key = task_text.task CROSS JOIN job ON job.number = task.key >> 20
LEFT JOIN worker ON worker.number = task.worker
WHERE task_text.id IN (SELECT value FROM json_each(?));

-- name: release
-- A lease ended without success: ready again, perhaps not before a time.
UPDATE task SET state = 'ready', worker = NULL, outcome = ?, due = ?, parked = ?, failures = failures + ?,
    losses = losses + ?, progress = 0
WHERE key = ?;

-- name: bury
-- A lease ended without success for the last time.
UPDATE task SET state = 'dead', worker = NULL, outcome = ?, failures = failures + ?, losses = losses + ?,
    finished = ?
WHERE key = ?;

-- name: failure_keep
-- Why the last attempt failed.
INSERT INTO failure (task, at, body) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at, body = excluded.body;

-- name: progress
-- How far a lease has come.
UPDATE task SET progress = ? WHERE key = (SELECT task FROM task_text WHERE id = ?) AND fence = ? AND worker = ? AND state = 'leased';

-- name: workers_in
-- Every worker whose row is not over.
SELECT number, id, host, boot, pid, pid_start, lanes, slots, machine, version, until, draining, note, started
FROM worker WHERE NOT over ORDER BY number;

-- name: worker_over
-- A worker's row is over: it can never claim or renew again.
UPDATE worker SET over = 1, until = min(until, ?) WHERE number = ?;

-- name: orphans
-- Tasks leased to workers that are over.
SELECT DISTINCT task_text.id, task.key FROM worker
CROSS JOIN hold ON hold.worker = worker.number
CROSS JOIN task ON task.key BETWEEN hold.first AND hold.last AND +task.worker = worker.number AND +state = 'leased'
CROSS JOIN task_text ON task_text.task = task.key
WHERE worker.over ORDER BY task.key LIMIT ?;

-- name: workers_forget
-- Rows that were over long ago and hold nothing.
DELETE FROM worker WHERE over AND until < ? AND NOT EXISTS (SELECT 1 FROM hold WHERE hold.worker = worker.number);

-- name: due_now
-- Tasks whose time has come can be claimed.
UPDATE task SET due = NULL WHERE due <= ?;

-- name: next_due
-- When the next one may be tried again.
SELECT min(due) FROM task WHERE due IS NOT NULL AND NOT parked;

-- name: drafts_stale
-- Drafts of jobs that are finished.
DELETE FROM draft WHERE job IN (SELECT DISTINCT draft.job FROM draft JOIN job ON job.number = draft.job
    WHERE job.finished IS NOT NULL);

-- name: next_lane
-- The next lane that has something to claim.
SELECT min(lane) FROM task WHERE state = 'ready' AND parked = 0 AND due IS NULL AND lane > ?;

-- name: ready_in
-- Tasks of a lane to announce.
SELECT id FROM task CROSS JOIN task_text ON task_text.task = task.key
WHERE state = 'ready' AND parked = 0 AND due IS NULL AND lane = ? ORDER BY rank, key LIMIT ?;

-- name: debt_paid
-- Published names that were made.
DELETE FROM debt WHERE owner = ? AND job = ? AND key = ?;

-- name: debts
-- Published names to make.
SELECT owner, job, key FROM debt ORDER BY owner, job, key LIMIT ?;

-- name: drafts_any
-- Whether a finished job left drafts.
SELECT 1 FROM draft JOIN job ON job.number = draft.job WHERE job.finished IS NOT NULL LIMIT 1;

-- name: next_due_of_all
-- The earliest time that any task waits for.
SELECT min(due) FROM task WHERE due IS NOT NULL;
