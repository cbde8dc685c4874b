-- Working: workers, leases and their ends.

-- name: worker_row
-- A worker's own row, held.
SELECT number, over, draining FROM rushes.worker WHERE id = :worker FOR NO KEY UPDATE;

-- name: worker_lease
-- The worker if its lease is not over, and whether it drains.
SELECT number, draining FROM rushes.worker
WHERE id = :worker AND NOT over AND until > coalesce(:now, (SELECT now FROM rushes.clock));

-- name: keep_worker
-- Another lease for a worker.
UPDATE rushes.worker SET until = coalesce(:now, (SELECT now FROM rushes.clock)) + :seconds, note = :note,
    seen = coalesce(:at, (SELECT wall FROM rushes.clock))
WHERE number = :number;

-- name: task_statuses
-- Where tasks and their jobs stand, for the answer to a fence.
SELECT task.id, task.stage, task.chunk, task.state, task.fence, worker.id, task.outcome, task.losses, job.cancelled,
    job.paused, task.key
FROM rushes.task JOIN rushes.job ON job.number = task.key >> 20
LEFT JOIN rushes.worker ON worker.number = task.worker
WHERE task.id = ANY (:ids) ORDER BY task.key;

-- name: release
-- A lease ended without success: ready again, perhaps not before a time.
UPDATE rushes.task SET state = 'ready', worker = NULL, outcome = :outcome, due = :due, parked = :parked, progress = 0,
    failures = failures + :failures, losses = losses + :losses,
    failure = CASE WHEN :waits THEN NULL ELSE coalesce(:failure, failure) END
WHERE key = :key;

-- name: dead_letter
-- A lease ended without success for the last time.
UPDATE rushes.task SET state = 'dead', worker = NULL, outcome = :outcome, finished = :at,
    failures = failures + :failures, losses = losses + :losses, failure = :failure
WHERE key = :key;
