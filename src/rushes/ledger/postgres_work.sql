-- Working: claims, leases, outcomes, sweeps.

-- name: claim
-- Lease the next few tasks of some lanes, each of which has a row of its own; one that somebody holds is passed over. A run
-- is not: nothing behind it is taken, whoever holds it, or what matters less would come first; the first run that is in
-- the way is answered too, without an id. Where there are any, the worker's own row is held, so that it cannot be over
-- before the leases are there. In no order: sorting these rows here takes longer than where they are read.
WITH me AS MATERIALIZED (
    SELECT NOT draining AND NOT over AND until > at AS able, at FROM rushes.worker
    CROSS JOIN (SELECT coalesce(%(at)s, (extract(epoch FROM now()) * 1000)::bigint) AS at) AS now WHERE id = %(worker)s
), next AS MATERIALIZED (
    SELECT lot.* FROM unnest(%(lanes)s::text[]) AS asked(lane) CROSS JOIN LATERAL (
        SELECT t.ctid AS place, t.rank, t.key FROM rushes.task AS t
        WHERE t.open AND t.lane = asked.lane AND t.worker IS NULL AND (SELECT able FROM me)
        ORDER BY t.rank, t.key LIMIT %(n)s FOR UPDATE SKIP LOCKED) AS lot
    ORDER BY lot.rank, lot.key LIMIT %(n)s
), farthest AS MATERIALIZED (
    SELECT rank, key FROM next ORDER BY rank, key OFFSET %(n)s - 1
), run AS MATERIALIZED (
    SELECT lot.* FROM unnest(%(lanes)s::text[]) AS asked(lane) CROSS JOIN LATERAL (
        SELECT t.rank, t.key FROM rushes.task AS t
        WHERE t.open AND t.lane = asked.lane AND t.worker IS NULL AND t.last > t.key AND (SELECT able FROM me)
            AND (t.rank, t.key) <= (coalesce((SELECT rank FROM farthest), 2147483647), coalesce((SELECT key FROM farthest), 0))
        ORDER BY t.rank, t.key LIMIT 1) AS lot
    ORDER BY lot.rank, lot.key LIMIT 1
), mine AS MATERIALIZED (
    SELECT number, at FROM rushes.worker, me
    WHERE id = %(worker)s AND NOT over AND until > at AND EXISTS (SELECT FROM next) FOR SHARE OF worker
), leased AS (
    UPDATE rushes.task SET worker = mine.number, fence = fence + 1, started = mine.at, outcome = NULL, progress = 0
    FROM mine WHERE task.ctid = ANY (ARRAY(
        SELECT place FROM next WHERE NOT EXISTS (SELECT FROM run WHERE (run.rank, run.key) <= (next.rank, next.key))))
    RETURNING key, fence, lane, failures, losses, rank
)
SELECT id, fence, leased.lane, spec, failures, losses, task, rank, key FROM leased JOIN rushes.task_text ON task = key
UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, key, rank, key FROM run;

-- name: loosen
-- Of the first run of some lanes, unless somebody holds it, so many tasks get rows of their own.
WITH first AS MATERIALIZED (
    SELECT lot.* FROM unnest(%(lanes)s::text[]) AS asked(lane) CROSS JOIN LATERAL (
        SELECT t.ctid AS place, t.rank, t.key FROM rushes.task AS t
        WHERE t.open AND t.lane = asked.lane AND t.worker IS NULL AND t.last > t.key
        ORDER BY t.rank, t.key LIMIT 1) AS lot
    ORDER BY lot.rank, lot.key LIMIT 1
), run AS MATERIALIZED (
    SELECT ctid AS place, key, last, least(last, key + %(loose)s - 1) AS till FROM rushes.task
    WHERE ctid = (SELECT place FROM first) FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM rushes.task WHERE ctid = (SELECT place FROM run WHERE till = last)
    RETURNING rank, fence, failures, losses, lane, started, outcome
), rest AS (
    UPDATE rushes.task SET key = (SELECT till FROM run) + 1 WHERE ctid = (SELECT place FROM run WHERE till < last)
    RETURNING rank, fence, failures, losses, lane, started, outcome
)
INSERT INTO rushes.task (key, last, state, open, rank, fence, failures, losses, lane, started, outcome)
SELECT one, one, 'ready', true, alike.*
FROM (SELECT * FROM gone UNION ALL SELECT * FROM rest) AS alike, run, generate_series(run.key, run.till) AS one;

-- name: claim_runs
-- The same for many tasks, each lane from a mark on: rows are leased as they are, of the last one as much as is asked for.
-- What is left of that stays where it was, so that whoever waits for the row has it.
WITH me AS MATERIALIZED (
    SELECT draining, coalesce(%(at)s, (extract(epoch FROM now()) * 1000)::bigint) AS at FROM rushes.worker
    WHERE id = %(worker)s
), next AS MATERIALIZED (
    SELECT lot.* FROM unnest(%(lanes)s::text[], %(ranks)s::integer[], %(keys)s::bigint[]) AS mark(lane, rank, key)
    CROSS JOIN LATERAL (
        SELECT t.ctid AS place, t.rank, t.key, t.last FROM rushes.task AS t
        WHERE t.open AND t.lane = mark.lane AND (t.rank, t.key) >= (mark.rank, mark.key) AND t.worker IS NULL
            AND (SELECT NOT draining FROM me)
        ORDER BY t.rank, t.key LIMIT %(rows)s FOR UPDATE SKIP LOCKED) AS lot
    ORDER BY lot.rank, lot.key LIMIT %(rows)s
), mine AS MATERIALIZED (
    SELECT number, at FROM rushes.worker, me
    WHERE id = %(worker)s AND NOT over AND until > at AND EXISTS (SELECT FROM next) FOR SHARE OF worker
), lot AS MATERIALIZED (
    SELECT place, key, last, least(last, key + %(n)s - before - 1) AS till FROM (
        SELECT *, sum(last - key + 1) OVER (ORDER BY rank, key)::bigint - (last - key + 1) AS before FROM next) AS next, mine
    WHERE before < %(n)s
), whole AS (
    UPDATE rushes.task SET worker = mine.number, fence = fence + 1, started = mine.at, outcome = NULL, progress = 0
    FROM mine WHERE task.ctid = ANY (ARRAY(SELECT place FROM lot WHERE till = last))
    RETURNING key, last, fence, lane, failures, losses, rank
), rest AS (
    UPDATE rushes.task SET key = till + 1 FROM lot
    WHERE task.ctid = (SELECT place FROM lot WHERE till < last) AND till < lot.last
    RETURNING lot.key, till AS last, fence + 1 AS fence, lane, failures, losses, rank
), cut AS (
    INSERT INTO rushes.task (key, last, fence, lane, failures, losses, rank, state, open, worker, started)
    SELECT rest.*, 'ready', true, number, at FROM rest, mine
)
SELECT id, fence, run.lane, spec, failures, losses, task, rank, key
FROM (SELECT * FROM whole UNION ALL SELECT * FROM rest) AS run JOIN rushes.task_text ON task BETWEEN key AND last;

-- name: claim_hinted
-- The same among tasks that were hinted at, each of which has a row of its own.
WITH me AS MATERIALIZED (
    SELECT draining, coalesce(%(at)s, (extract(epoch FROM now()) * 1000)::bigint) AS at FROM rushes.worker
    WHERE id = %(worker)s
), next AS (
    SELECT t.ctid AS place FROM rushes.task_text JOIN rushes.task AS t ON t.key = task_text.task
    WHERE task_text.id = ANY (%(ids)s) AND t.last = t.key AND t.open AND t.lane = ANY (%(lanes)s) AND t.worker IS NULL
        AND (SELECT NOT draining FROM me)
    ORDER BY t.rank, t.key LIMIT %(n)s FOR UPDATE OF t SKIP LOCKED
), mine AS MATERIALIZED (
    SELECT number, at FROM rushes.worker, me
    WHERE id = %(worker)s AND NOT over AND until > at AND EXISTS (SELECT FROM next) FOR SHARE OF worker
), leased AS (
    UPDATE rushes.task SET worker = mine.number, fence = fence + 1, started = mine.at, outcome = NULL, progress = 0
    FROM mine WHERE task.ctid = ANY (ARRAY(SELECT place FROM next))
    RETURNING key, fence, lane, failures, losses, rank
)
SELECT id, fence, leased.lane, spec, failures, losses, task, rank, key FROM leased JOIN rushes.task_text ON task = key;

-- name: jobs_of_runs
-- The jobs of runs with one of these tasks.
SELECT DISTINCT text.task >> 20 FROM rushes.task_text AS text CROSS JOIN LATERAL (
    SELECT key, last FROM rushes.task WHERE key BETWEEN (text.task >> 20) << 20 AND text.task ORDER BY key DESC LIMIT 1) AS run
WHERE text.id = ANY (%(ids)s) AND run.last >= text.task AND run.last > run.key;

-- name: part
-- Tasks of runs get rows of their own, and those between them too. Their jobs are held, so that nobody passes over the new
-- rows because the old ones were there when he looked.
WITH asked AS MATERIALIZED (
    SELECT text.task, run.key, run.last FROM rushes.task_text AS text CROSS JOIN LATERAL (
        SELECT key, last FROM rushes.task WHERE key BETWEEN (text.task >> 20) << 20 AND text.task
        ORDER BY key DESC LIMIT 1) AS run
    WHERE text.id = ANY (%(ids)s) AND run.last >= text.task AND run.last > run.key
), gone AS (
    DELETE FROM rushes.task WHERE key IN (SELECT key FROM asked) RETURNING *
), piece AS MATERIALIZED (
    SELECT key AS run, task AS first, task AS last FROM asked
    UNION ALL
    SELECT key, coalesce(lag(task) OVER (PARTITION BY key ORDER BY task) + 1, key), task - 1 FROM asked
    UNION ALL
    SELECT key, max(task) + 1, min(last) FROM asked GROUP BY key
)
INSERT INTO rushes.task (key, last, progress, rank, unmet, fence, state, failures, losses, parked, open, lane, worker,
    started, due, finished, outcome)
SELECT first, piece.last, progress, rank, unmet, fence, state, failures, losses, parked, open, lane, worker, started, due,
    finished, outcome
FROM gone JOIN piece ON run = key WHERE first <= piece.last;

-- name: unanswered
-- What a worker has leased without knowing it.
SELECT text.id, fence, text.lane, spec, failures, losses, text.task, rank, key
FROM rushes.task JOIN rushes.task_text AS text ON text.task BETWEEN key AND last
WHERE open AND worker = (SELECT number FROM rushes.worker WHERE id = %(worker)s AND NOT over) AND text.id <> ALL (%(known)s)
ORDER BY rank, text.task LIMIT %(n)s;

-- name: may_claim
-- Whether a worker's lease is not over.
SELECT FROM rushes.worker
WHERE id = %(worker)s AND NOT over AND until > coalesce(%(at)s, (extract(epoch FROM now()) * 1000)::bigint);

-- name: worker_row
-- A worker's own row, held.
SELECT number, over, draining, until FROM rushes.worker WHERE id = %(worker)s FOR NO KEY UPDATE;

-- name: schema
-- The schema of the ledger now: it may have grown under our feet.
SELECT version FROM rushes.part WHERE name = 'ledger';

-- name: worker_enter
-- A new incarnation.
INSERT INTO rushes.worker (id, until, note, started, host, boot, pid, pid_start, lanes, slots, machine, version)
VALUES (%(worker)s, %(until)s, %(note)s, %(at)s, %(host)s, %(boot)s, %(pid)s, %(pid_start)s, %(lanes)s, %(slots)s,
    %(machine)s, %(version)s);

-- name: worker_keep
-- Another lease for a worker.
UPDATE rushes.worker SET until = %(until)s, note = %(note)s WHERE number = %(number)s;

-- name: progress
-- How far leases have come, each of which has a row of its own; a row that somebody holds is passed over.
WITH told AS MATERIALIZED (
    SELECT task AS key, fence, progress
    FROM json_to_recordset(%(rows)s::json) AS p(id text, fence integer, progress double precision)
    JOIN rushes.task_text ON task_text.id = p.id
), held AS (
    SELECT told.* FROM told JOIN rushes.task ON task.key = told.key
    WHERE task.fence + 0 = told.fence AND task.worker + 0 = %(number)s AND task.last = task.key FOR UPDATE OF task SKIP LOCKED
)
UPDATE rushes.task SET progress = held.progress FROM held WHERE task.key = held.key;

-- name: keys
-- The keys of tasks.
SELECT id, task FROM rushes.task_text WHERE id = ANY (%(ids)s);

-- name: needing_jobs
-- Other jobs with tasks that need one of these.
SELECT DISTINCT need.task >> 20 FROM rushes.need
WHERE ref = ANY (%(keys)s::bigint[]) AND need.task >> 20 <> ref >> 20;

-- name: finish
-- Done, if the lease is still this worker's at this fence, by runs of keys that hold whole rows; the counts of those who
-- need them follow, and at none left a task that waited is ready. How many are done, which if not all, and what became
-- ready.
WITH finished AS (
    DELETE FROM rushes.task USING unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) AS asked(first, last)
    WHERE key BETWEEN asked.first AND asked.last AND task.last <= asked.last AND fence = %(fence)s
        AND worker = (SELECT number FROM rushes.worker WHERE id = %(worker)s)
    RETURNING key, task.last, started, progress, failures, losses
), run AS MATERIALIZED (
    SELECT min(key) AS first, max(last) AS last, started, progress, failures, losses
    FROM (SELECT *, last - sum(last - key + 1) OVER (PARTITION BY started, progress, failures, losses ORDER BY key) AS base
        FROM finished) AS alike
    GROUP BY base, started, progress, failures, losses
), kept AS (
    INSERT INTO rushes.task_done (first, last, started, finished, progress, fence, failures, losses, adopted)
    SELECT first, last, started, coalesce(%(at)s, (extract(epoch FROM now()) * 1000)::bigint), progress, %(fence)s,
        failures, losses, %(adopted)s FROM run
), down AS (
    SELECT met.task, met.n, paused > 0 OR cancelled AS stopped
    FROM (SELECT task, count(*)::integer AS n FROM run JOIN rushes.need ON ref BETWEEN run.first AND run.last
        GROUP BY task) AS met
    JOIN rushes.job ON job.number = met.task >> 20
), counted AS (
    UPDATE rushes.task
    SET unmet = greatest(unmet - n, 0), parked = CASE WHEN state = 'waiting' AND unmet <= n THEN stopped ELSE parked END,
        open = CASE WHEN state = 'waiting' AND unmet <= n THEN NOT stopped ELSE open END,
        state = CASE WHEN state = 'waiting' AND unmet <= n THEN 'ready' ELSE state END
    FROM down WHERE key = down.task AND unmet > 0 RETURNING key, state, unmet, parked
)
SELECT done.n, CASE WHEN done.n < %(all)s THEN done.runs END, (
    SELECT json_agg(json_build_array(key, id, parked) ORDER BY key) FROM counted JOIN rushes.task_text ON task = key
    WHERE unmet = 0 AND state = 'ready')
FROM (SELECT coalesce(sum(last - first + 1), 0)::integer AS n, json_agg(json_build_array(first, last)) AS runs FROM run) AS done;

-- name: results_add
-- Results that are not there: if one is, the transaction is tried again with `results_keep`.
INSERT INTO rushes.result (owner, key, output, manifest_sha256, size, count, schema_version, publishes)
SELECT (ARRAY(SELECT owner FROM rushes.job WHERE number = ANY (%(jobs)s::bigint[]) ORDER BY number))[
    unnest(%(owners)s::integer[])], unnest(%(key)s::text[]), unnest(%(output)s::text[]), unnest(%(manifest_sha256)s::text[]),
    unnest(%(size)s::bigint[]), unnest(%(count)s::bigint[]), unnest(%(schema_version)s::integer[]),
    unnest(%(publishes)s::boolean[]);

-- name: results_keep
-- Results of which some may be there: what is there never changes. It takes half as long again.
INSERT INTO rushes.result (owner, key, output, manifest_sha256, size, count, schema_version, publishes)
SELECT (ARRAY(SELECT owner FROM rushes.job WHERE number = ANY (%(jobs)s::bigint[]) ORDER BY number))[
    unnest(%(owners)s::integer[])], unnest(%(key)s::text[]), unnest(%(output)s::text[]), unnest(%(manifest_sha256)s::text[]),
    unnest(%(size)s::bigint[]), unnest(%(count)s::bigint[]), unnest(%(schema_version)s::integer[]),
    unnest(%(publishes)s::boolean[])
ON CONFLICT DO NOTHING;

-- name: debts_add
-- Published names that are still to be made.
INSERT INTO rushes.debt (owner, job, key)
SELECT owner, job, key FROM json_to_recordset(%(rows)s::json) AS r(owner text, job text, key text) ON CONFLICT DO NOTHING;

-- name: standing
-- Where tasks stand, for an answer about a fence.
SELECT row.id, task, row.state, fence, outcome, worker.id, job.cancelled, job.paused, stage, chunk, row.losses
FROM rushes.task_row AS row JOIN rushes.job ON job.number = task >> 20
LEFT JOIN rushes.worker ON worker.number = row.worker
WHERE row.id = ANY (%(ids)s) ORDER BY task;

-- name: end_leases
-- Leases that ended without success, each of which has a row of its own: ready again, perhaps not before a time, or dead.
UPDATE rushes.task SET worker = NULL, state = r.state, outcome = r.outcome, due = r.due, parked = r.parked,
    open = r.state = 'ready' AND r.due IS NULL AND NOT r.parked, failures = task.failures + r.failures,
    losses = task.losses + r.losses, progress = CASE WHEN r.state = 'dead' THEN progress ELSE 0 END,
    finished = CASE WHEN r.state = 'dead' THEN %(at)s::bigint END
FROM json_to_recordset(%(rows)s::json) AS r(key bigint, state rushes.task_state, outcome text, due bigint, parked boolean,
    failures smallint, losses smallint)
WHERE task.key = r.key;

-- name: failure_keep
-- Why the last attempt failed.
INSERT INTO rushes.failure (task, at, body) VALUES (%(key)s, %(at)s, %(body)s)
ON CONFLICT (task) DO UPDATE SET at = excluded.at, body = excluded.body;

-- name: workers_in
-- Every worker whose row is not over.
SELECT number, id, host, boot, pid, pid_start, lanes, slots, machine, version, until, draining, note, started
FROM rushes.worker WHERE NOT over ORDER BY number;

-- name: workers_over
-- Rows of workers that are over now, but for those that somebody holds: they can never claim or renew again.
UPDATE rushes.worker SET over = true, until = least(until, %(at)s)
WHERE number IN (SELECT number FROM rushes.worker WHERE number = ANY (%(numbers)s) AND NOT over
    AND (until <= %(at)s OR number = ANY (%(gone)s)) FOR NO KEY UPDATE SKIP LOCKED);

-- name: workers_left
-- Workers that are over and may hold something.
SELECT number FROM rushes.worker WHERE over AND NOT freed;

-- name: orphans
-- Tasks leased to these workers. Rows are counted off first: else the planner may walk all tasks that there ever were.
SELECT id, fence FROM (
    SELECT key, last, fence FROM rushes.task WHERE open AND worker = ANY (%(numbers)s) ORDER BY key LIMIT %(limit)s) AS run
JOIN rushes.task_text ON task BETWEEN run.key AND run.last ORDER BY task LIMIT %(limit)s;

-- name: workers_free
-- They hold nothing any more and are not looked for again.
UPDATE rushes.worker SET freed = true WHERE number = ANY (%(numbers)s);

-- name: workers_forget
-- Rows that were over long ago and hold nothing.
DELETE FROM rushes.worker WHERE freed AND until < %(before)s;

-- name: due_now
-- Tasks whose time has come can be claimed; a row that somebody holds is passed over.
UPDATE rushes.task SET due = NULL, open = NOT parked
WHERE key IN (SELECT key FROM rushes.task WHERE due <= %(at)s FOR UPDATE SKIP LOCKED);

-- name: next_due
-- When the next one may be tried again.
SELECT min(due) FROM rushes.task WHERE due IS NOT NULL AND NOT parked;

-- name: drafts_stale
-- Drafts of jobs that are finished.
DELETE FROM rushes.draft USING rushes.job WHERE job.number = draft.job AND job.finished IS NOT NULL;

-- name: ready
-- Tasks to announce, an equal share of each lane.
WITH RECURSIVE lane(name) AS (
    SELECT min(lane) FROM rushes.task WHERE open AND worker IS NULL
    UNION ALL
    SELECT (SELECT min(task.lane) FROM rushes.task WHERE open AND worker IS NULL AND task.lane > lane.name)
    FROM lane WHERE lane.name IS NOT NULL
), share AS (
    SELECT name, greatest(1, %(limit)s / count(*) OVER ()) AS n FROM lane WHERE name IS NOT NULL
)
SELECT lot.id FROM share CROSS JOIN LATERAL (
    SELECT id, task, rank FROM (
        SELECT *, sum(last - key + 1) OVER (ORDER BY rank, key)::bigint - (last - key + 1) AS before FROM (
            SELECT key, last, rank FROM rushes.task WHERE open AND worker IS NULL AND lane = share.name
            ORDER BY rank, key LIMIT share.n) AS next) AS run
    JOIN rushes.task_text ON task BETWEEN run.key AND least(run.last, run.key + share.n - before - 1)
    WHERE before < share.n) AS lot ORDER BY share.name, lot.rank, lot.task;

-- name: debts_paid
-- Published names that were made.
DELETE FROM rushes.debt USING json_to_recordset(%(rows)s::json) AS r(owner text, job text, key text)
WHERE debt.owner = r.owner AND debt.job = r.job AND debt.key = r.key;

-- name: debts
-- Published names to make.
SELECT owner, job, key FROM rushes.debt ORDER BY owner, job, key LIMIT %(limit)s;
