-- What PostgreSQL says in its own way.

-- name: claim
-- Lease the next ready tasks of some lanes: higher priority first, then older jobs, then plan order. If there are any,
-- the worker's own row is held, so that it cannot be over before the leases are there.
WITH next AS MATERIALIZED (
    SELECT ready.key FROM unnest(:lanes::text[]) AS wanted(lane) CROSS JOIN LATERAL (
        SELECT key, rank FROM rushes.task
        WHERE state = 'ready' AND NOT parked AND due IS NULL AND lane = wanted.lane
        ORDER BY rank, key LIMIT :n FOR UPDATE SKIP LOCKED) AS ready
    ORDER BY ready.rank, ready.key LIMIT :n
), alive AS MATERIALIZED (
    SELECT number FROM rushes.worker WHERE id = :worker AND NOT draining AND NOT over
        AND until > coalesce(:now, extract(epoch FROM now())) AND EXISTS (SELECT FROM next) FOR SHARE
), leased AS (
    UPDATE rushes.task SET state = 'leased', worker = alive.number, claim = :claim, fence = fence + 1, outcome = NULL,
        progress = 0, started = coalesce(:at, (extract(epoch FROM now()) * 1000)::bigint)
    FROM next, alive WHERE task.key = next.key RETURNING task.*
)
SELECT rank, key, id, fence, stage, chunk, lane, spec, failures, losses
FROM leased JOIN rushes.task_spec ON task_spec.task = leased.key;

-- name: claim_hinted
-- The same among tasks that were hinted at.
WITH next AS MATERIALIZED (
    SELECT key FROM rushes.task
    WHERE id = ANY (:ids) AND state = 'ready' AND NOT parked AND due IS NULL AND lane = ANY (:lanes)
    ORDER BY rank, key LIMIT :n FOR UPDATE SKIP LOCKED
), alive AS MATERIALIZED (
    SELECT number FROM rushes.worker WHERE id = :worker AND NOT draining AND NOT over
        AND until > coalesce(:now, extract(epoch FROM now())) AND EXISTS (SELECT FROM next) FOR SHARE
), leased AS (
    UPDATE rushes.task SET state = 'leased', worker = alive.number, claim = :claim, fence = fence + 1, outcome = NULL,
        progress = 0, started = coalesce(:at, (extract(epoch FROM now()) * 1000)::bigint)
    FROM next, alive WHERE task.key = next.key RETURNING task.*
)
SELECT rank, key, id, fence, stage, chunk, lane, spec, failures, losses
FROM leased JOIN rushes.task_spec ON task_spec.task = leased.key;

-- name: claim_again
-- What earlier calls of a worker leased without an answer.
WITH again AS (
    UPDATE rushes.task SET claim = :claim WHERE key IN (
        SELECT key FROM rushes.worker JOIN rushes.task ON task.worker = worker.number AND task.state = 'leased'
        WHERE worker.id = :worker AND NOT over AND task.claim = ANY (:unconfirmed) LIMIT :n)
    RETURNING task.*
)
SELECT rank, key, id, fence, stage, chunk, lane, spec, failures, losses
FROM again JOIN rushes.task_spec ON task_spec.task = again.key;

-- name: finish
-- Done, where the lease is still this worker's at that fence; its job is held. Each task is found by its id first: a plan
-- that was made while the table was young would else compare every leased task with every finish.
WITH held AS MATERIALIZED (
    SELECT found.key, done.adopted FROM json_to_recordset(:rows) AS done(id text, fence integer, adopted boolean)
    CROSS JOIN LATERAL (SELECT key FROM rushes.task WHERE task.id = done.id AND task.fence = done.fence
        AND worker + 0 = (SELECT number FROM rushes.worker WHERE worker.id = :worker) OFFSET 0) AS found
)
UPDATE rushes.task SET state = 'done', worker = NULL, outcome = 'done', adopted = held.adopted, finished = :at
FROM held WHERE task.key = held.key RETURNING task.id, task.fence, task.key;

-- name: keep_progress
-- How far leases have come; a row that somebody holds is passed over, because a renewal waits for nobody.
UPDATE rushes.task SET progress = held.progress FROM (
    SELECT key, told.progress FROM json_to_recordset(:rows) AS told(id text, fence integer, progress double precision)
    JOIN rushes.task ON task.id = told.id AND task.fence = told.fence
    WHERE worker + 0 = :number FOR UPDATE OF task SKIP LOCKED) AS held
WHERE task.key = held.key;

-- name: save_job
-- Write a job row, which started when its first task did; with new events it bears the number of this transaction.
WITH moved AS (
    INSERT INTO rushes.job_change (job, changed) SELECT :number, pg_current_xact_id() WHERE :changed
    ON CONFLICT (job) DO UPDATE SET changed = excluded.changed
)
UPDATE rushes.job SET state = :state, priority = :priority, paused = :paused, cancelled = :cancelled, opened = :opened,
    total = :total, done = :done, dead = :dead, live = :live, losses = :losses, failures = :failures,
    last_event = :last_event, finished = :finished,
    started = coalesce(started, (SELECT task.started FROM rushes.task WHERE task.key = job.number << 20))
WHERE number = :number;

-- name: changed
-- Jobs that a transaction changed after a place, or one that was still under way then; and who is under way now. A
-- place that is still to come here is one of another database, from before a dump was restored.
SELECT job.id, changed::text, number, pg_current_snapshot()::text
FROM rushes.job_change JOIN rushes.job ON number = job_change.job
WHERE (changed, job_change.job) > (CASE WHEN :top::xid8 < pg_snapshot_xmax(pg_current_snapshot())
    THEN :top::xid8 ELSE '0'::xid8 END, :number) OR changed = ANY (:late::xid8[])
ORDER BY changed, job_change.job LIMIT :limit;

-- name: restored
-- Jobs from a dump bear numbers of transactions that are still to come here.
UPDATE rushes.job_change SET changed = pg_current_xact_id() WHERE changed >= pg_snapshot_xmax(pg_current_snapshot())
RETURNING job;

-- name: hold_keys
-- Whoever needs a blob key, or says that it is there, holds its name until the commit: neither can miss the other.
SELECT pg_advisory_xact_lock(7310028, hash) FROM (
    SELECT DISTINCT hashtext(key) AS hash FROM unnest(:keys::text[]) AS key ORDER BY 1) AS keys;

-- name: schema
-- The schema of the ledger now: a newer version may have changed it while we run.
SELECT version FROM rushes.part WHERE name = 'ledger';
