-- What PostgreSQL says in its own way.

-- name: claim
-- Lease the next ready tasks of some lanes (only those hinted at, unless it is about every one): higher priority first,
-- then older jobs, then plan order. If there are any, the worker's own row is held, so that it cannot be over before the
-- leases are there.
WITH next AS MATERIALIZED (
    SELECT ready.key FROM unnest(:lanes::text[]) AS wanted(lane) CROSS JOIN LATERAL (
        SELECT key, rank FROM rushes.task
        WHERE state = 'ready' AND NOT parked AND due IS NULL AND lane = wanted.lane AND (:every OR id = ANY (:ids))
        ORDER BY rank, key LIMIT :n FOR UPDATE SKIP LOCKED) AS ready
    ORDER BY ready.rank, ready.key LIMIT :n
), alive AS MATERIALIZED (
    SELECT number FROM rushes.worker WHERE id = :worker AND NOT draining AND NOT over
        AND until > coalesce(:now, (SELECT now FROM rushes.clock)) AND EXISTS (SELECT FROM next) FOR SHARE
), leased AS (
    UPDATE rushes.task SET state = 'leased', worker = alive.number, claim = :claim, fence = fence + 1, outcome = NULL,
        progress = 0, started = coalesce(:at, (SELECT wall FROM rushes.clock))
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

-- name: submit
-- A job with its texts, first task and first event, unless its id is taken.
WITH made AS (
    INSERT INTO rushes.job (id, owner, state, priority, total, live, last_event, created, queue)
    VALUES (:id, :owner, 'created', :priority, 1, :live, 1, coalesce(:at, (SELECT wall FROM rushes.clock)), :queue)
    ON CONFLICT (id) DO NOTHING RETURNING number, created
), change AS (
    INSERT INTO rushes.job_change (job, changed) SELECT number, pg_current_xact_id() FROM made
), texts AS (
    INSERT INTO rushes.job_text (job, team, request_id, name, recipe, payload, facts)
    SELECT number, :team, :request_id, :name, :recipe, :payload, '' FROM made
), task AS (
    INSERT INTO rushes.task (key, id, stage, chunk, lane, place, rank, state, parked, unmet, fence, adopted, failures,
        losses, progress, created)
    SELECT number << 20, :task, :stage, :chunk, :lane, :place, -:priority, :state, false, :unmet, 0, false, 0, 0, 0, created
    FROM made
), spec AS (
    INSERT INTO rushes.task_spec (task, spec) SELECT number << 20, :spec FROM made
), event AS (
    INSERT INTO rushes.event (job, seq, type, at, body) SELECT number, 1, 'submitted', created, :body FROM made
)
SELECT created FROM made;

-- name: finish
-- Done, where the lease is still this worker's at that fence; its job is held. Each task is found by its id first: a plan
-- that was made while the table was young would else compare every leased task with every finish. Whoever needs these
-- tasks has so many unmet needs less; at none left one that waited is ready. Drafts of a job whose first task is done are
-- taken.
WITH held AS MATERIALIZED (
    SELECT found.key, done.adopted FROM json_to_recordset(:rows) AS done(id text, fence integer, adopted boolean)
    CROSS JOIN LATERAL (SELECT key FROM rushes.task WHERE task.id = done.id AND task.fence = done.fence
        AND worker + 0 = (SELECT number FROM rushes.worker WHERE worker.id = :worker) OFFSET 0) AS found
), done AS (
    UPDATE rushes.task SET state = 'done', worker = NULL, outcome = 'done', adopted = held.adopted,
        finished = coalesce(:at, (SELECT wall FROM rushes.clock))
    FROM held WHERE task.key = held.key RETURNING task.id, task.fence, task.key
), met AS (
    SELECT need.task, count(*) AS n FROM done JOIN rushes.need ON need.ref = done.key GROUP BY need.task
), counted AS (
    UPDATE rushes.task SET unmet = greatest(unmet - met.n, 0),
        state = CASE WHEN state = 'waiting' AND unmet <= met.n THEN 'ready' ELSE state END
    FROM met WHERE task.key = met.task AND unmet > 0 RETURNING task.key, task.id, task.state
), taken AS (
    DELETE FROM rushes.draft USING done WHERE draft.job = done.key >> 20 AND done.key & 1048575 = 0
    RETURNING draft.job, draft.id, draft.body, draft.fence
)
SELECT 'done', key, id, NULL, fence FROM done UNION ALL SELECT 'counted', key, id, state, NULL FROM counted
UNION ALL SELECT 'draft', job, id, body, fence FROM taken;

-- name: keep_progress
-- How far leases have come; a row that somebody holds is passed over, because a renewal waits for nobody.
UPDATE rushes.task SET progress = held.progress FROM (
    SELECT key, told.progress FROM json_to_recordset(:rows) AS told(id text, fence integer, progress double precision)
    JOIN rushes.task ON task.id = told.id AND task.fence = told.fence
    WHERE worker + 0 = :number FOR UPDATE OF task SKIP LOCKED) AS held
WHERE task.key = held.key;

-- name: save_job
-- Write job rows, which started when their first tasks did; those with new events bear the number of this transaction.
UPDATE rushes.job SET state = saved.state, priority = saved.priority, paused = saved.paused,
    cancelled = saved.cancelled, opened = saved.opened, total = saved.total, done = saved.done, dead = saved.dead,
    live = saved.live, losses = saved.losses, failures = saved.failures, last_event = saved.last_event,
    finished = saved.finished, cancelled_stages = saved.cancelled_stages,
    started = coalesce(job.started, (SELECT task.started FROM rushes.task WHERE task.key = job.number << 20))
FROM json_populate_recordset(NULL::rushes.job, :rows) AS saved WHERE job.number = saved.number;
INSERT INTO rushes.job_change (job, changed)
SELECT number, pg_current_xact_id() FROM json_to_recordset(:rows) AS saved(number bigint, changed boolean) WHERE changed
ON CONFLICT (job) DO UPDATE SET changed = excluded.changed;

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
-- The schema that a version must know to work here: a newer one may have changed it while we run.
SELECT needed FROM rushes.part WHERE name = 'ledger';

-- name: forget_change
-- The change of a job.
DELETE FROM rushes.job_change WHERE job = :job;
