-- Control: commands to workers and jobs, revival.

-- name: drain_worker
-- A worker is told to stop claiming.
UPDATE rushes.worker SET draining = true WHERE number = :number;

-- name: leave_worker
-- A worker has left: its row is over if it holds nothing, else only its lease, and the next sweep takes what it left.
UPDATE rushes.worker SET until = CASE WHEN until < :now THEN until ELSE :now END,
    over = NOT EXISTS (SELECT 1 FROM rushes.task WHERE task.state = 'leased' AND task.worker = worker.number)
WHERE number = :number;

-- name: park_job
-- Ready tasks of a job are hidden from claims, or shown again.
UPDATE rushes.task SET parked = :parked
WHERE key BETWEEN :first AND :last AND state = 'ready' AND parked <> :parked;

-- name: take_leases
-- What is leased of a cancelled job is nobody's any more.
UPDATE rushes.task SET state = 'ready', worker = NULL, parked = true, progress = 0
WHERE key BETWEEN :first AND :last AND state = 'leased';

-- name: rank_tasks
-- A job's priority, on its tasks.
UPDATE rushes.task SET rank = :rank WHERE key BETWEEN :first AND :last AND rank <> :rank;

-- name: to_cancel
-- Tasks of some stages that are not finished, held.
SELECT key, state FROM rushes.task
WHERE key BETWEEN :first AND :last AND stage = ANY (:stages) AND state IN ('waiting', 'ready', 'leased')
ORDER BY key FOR UPDATE OF task;

-- name: cancel_tasks
-- These tasks are not wanted any more, and nobody's.
UPDATE rushes.task SET state = 'cancelled', worker = NULL, parked = false, due = NULL, progress = 0, finished = :at
WHERE key = ANY (:keys);

-- name: to_revive
-- Tasks that a revival means: dead ones; with `again` those that are done, without it those that back off, and those
-- that were cancelled if their stage is named.
SELECT key, id, state FROM rushes.task
WHERE key BETWEEN :first AND :last
    AND (state = 'dead' OR CASE WHEN :again THEN state = 'done'
        ELSE due IS NOT NULL OR (state = 'cancelled' AND NOT :every_stage) END)
    AND (:every_stage OR stage = ANY (:stages)) AND (:every OR id = ANY (:ids))
ORDER BY key;

-- name: delayed_tasks
-- Those of some tasks that wait for their time.
SELECT key, id FROM rushes.task
WHERE key BETWEEN :first AND :last AND due IS NOT NULL AND id = ANY (:ids) ORDER BY key;

-- name: end_backoff
-- These tasks are due now.
UPDATE rushes.task SET due = NULL WHERE key = ANY (:keys);

-- name: revive
-- These tasks have fresh tries.
UPDATE rushes.task SET state = 'waiting', failures = 0, losses = 0, due = NULL, progress = 0, parked = false,
    finished = NULL
WHERE key = ANY (:keys);

-- name: dependent_jobs
-- Jobs with tasks that need one of this job.
SELECT DISTINCT task >> 20 FROM rushes.need WHERE ref BETWEEN :first AND :last;

-- name: dependents
-- Tasks, held, that have not begun and need a task of this job that is not done, and whether they were ready.
SELECT key, state FROM rushes.task
WHERE state IN ('waiting', 'ready', 'dead', 'cancelled') AND key IN (
    SELECT need.task FROM rushes.need JOIN rushes.task AS needed ON needed.key = need.ref
    WHERE need.ref BETWEEN :first AND :last AND needed.state <> 'done')
ORDER BY key FOR UPDATE OF task;

-- name: reset_needs
-- These tasks wait for what is not done or has not arrived.
UPDATE rushes.task SET parked = false, due = NULL, state = CASE WHEN state = 'ready' THEN 'waiting' ELSE state END,
    unmet = (
        SELECT count(*) FROM rushes.need LEFT JOIN rushes.task AS needed ON needed.key = need.ref
        WHERE need.task = task.key AND (needed.key IS NULL OR needed.state <> 'done')
    ) + (SELECT count(*) FROM rushes.need_key WHERE need_key.task = task.key AND NOT met)
WHERE key = ANY (:keys);

-- name: ready_revived
-- Revived tasks without unmet needs are ready.
UPDATE rushes.task SET state = 'ready', parked = :parked
WHERE key = ANY (:keys) AND state = 'waiting' AND unmet = 0 RETURNING key;

-- name: trim_events
-- Events up to the last one that is so old are dropped; the job's last one stays.
DELETE FROM rushes.event WHERE job = :job AND seq < :last
    AND seq <= (SELECT max(seq) FROM rushes.event WHERE job = :job AND at <= :before);

-- name: trim_logs
-- Log lines of a job that are so old.
DELETE FROM rushes.log WHERE at <= :before
    AND task IN (SELECT id FROM rushes.task WHERE key BETWEEN :first AND :last);

-- name: forget_logs
-- Log lines of a job.
DELETE FROM rushes.log WHERE task IN (SELECT id FROM rushes.task WHERE key BETWEEN :first AND :last);

-- name: forget_needs
-- What tasks of a job need, and who needs one of them: it waits for nobody, as for a task that never was.
DELETE FROM rushes.need WHERE task BETWEEN :first AND :last OR ref BETWEEN :first AND :last;

-- name: forget_key_needs
-- Blob keys that tasks of a job need.
DELETE FROM rushes.need_key WHERE task BETWEEN :first AND :last;

-- name: forget_specs
-- What tasks of a job were asked to do.
DELETE FROM rushes.task_spec WHERE task BETWEEN :first AND :last;

-- name: forget_tasks
-- Tasks of a job.
DELETE FROM rushes.task WHERE key BETWEEN :first AND :last;

-- name: forget_events
-- Events of a job.
DELETE FROM rushes.event WHERE job = :job;

-- name: forget_drafts
-- Drafts of a job.
DELETE FROM rushes.draft WHERE job = :job;

-- name: forget_debts
-- Names that a job owes.
DELETE FROM rushes.debt WHERE job = :id;

-- name: forget_texts
-- The texts of a job.
DELETE FROM rushes.job_text WHERE job = :job;

-- name: forget_job
-- A job.
DELETE FROM rushes.job WHERE number = :job;
