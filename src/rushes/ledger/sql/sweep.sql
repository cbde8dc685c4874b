-- Sweeping: workers that are over, what they held, back-offs that end, debts.

-- name: workers
-- Every worker whose row is not over.
SELECT number, id, host, boot, pid, pid_start, lanes, slots, machine, version, owner, until, draining, note, started,
    (SELECT now FROM rushes.clock)
FROM rushes.worker WHERE NOT over ORDER BY number;

-- name: quiet
-- Whether nothing is leased, ready, due, owed or drafted. By the first entry of each index: to look for any row, the
-- planner may read a whole table.
SELECT (SELECT min(worker) FROM rushes.task WHERE state = 'leased') IS NULL
    AND (SELECT min(lane) FROM rushes.task WHERE state = 'ready' AND NOT parked AND due IS NULL) IS NULL
    AND (SELECT min(due) FROM rushes.task WHERE due IS NOT NULL) IS NULL
    AND NOT EXISTS (SELECT 1 FROM rushes.debt) AND NOT EXISTS (SELECT 1 FROM rushes.draft);

-- name: end_workers
-- Rows of workers are over, but for those that somebody holds: they can never claim or renew again.
UPDATE rushes.worker SET over = true, until = CASE WHEN until < :now THEN until ELSE :now END
WHERE number IN (SELECT number FROM rushes.worker WHERE number = ANY (:numbers) AND NOT over
    AND (until <= :now OR number = ANY (:gone)) FOR NO KEY UPDATE SKIP LOCKED);

-- name: orphans
-- Tasks leased to workers that are over. In no order: else the planner may walk all tasks that there ever were.
SELECT task.id, task.fence FROM rushes.worker
JOIN rushes.task ON task.worker = worker.number AND task.state = 'leased'
WHERE worker.over LIMIT :limit;

-- name: forget_workers
-- Rows that were over long ago and hold nothing.
DELETE FROM rushes.worker WHERE over AND until < :before
    AND NOT EXISTS (SELECT 1 FROM rushes.task WHERE task.state = 'leased' AND task.worker = worker.number);

-- name: end_backoffs
-- Tasks whose time has come can be claimed; a row that somebody holds is passed over.
UPDATE rushes.task SET due = NULL
WHERE key IN (SELECT key FROM rushes.task WHERE due <= :now FOR UPDATE SKIP LOCKED);

-- name: next_due
-- When the next one may be tried again.
SELECT min(due) FROM rushes.task WHERE due IS NOT NULL AND NOT parked;

-- name: drop_stale_drafts
-- Drafts of jobs that are finished.
DELETE FROM rushes.draft WHERE job IN (
    SELECT DISTINCT draft.job FROM rushes.draft JOIN rushes.job ON job.number = draft.job
    WHERE job.finished IS NOT NULL);

-- name: next_lane
-- The next lane that has something to claim.
SELECT min(lane) FROM rushes.task WHERE state = 'ready' AND NOT parked AND due IS NULL AND lane > :after;

-- name: ready_in
-- Tasks of a lane to announce.
SELECT id FROM rushes.task WHERE state = 'ready' AND NOT parked AND due IS NULL AND lane = :lane
ORDER BY rank, key LIMIT :limit;

-- name: pay_debt
-- A published name was made.
DELETE FROM rushes.debt WHERE owner = :owner AND job = :job AND key = :key;

-- name: debts
-- Published names to make.
SELECT owner, job, key FROM rushes.debt ORDER BY owner, job, key LIMIT :limit;
