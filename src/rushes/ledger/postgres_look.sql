-- Looking: jobs, tasks, results, events, changes.

-- name: job
-- One job.
SELECT * FROM rushes.job_seen WHERE id = %(id)s;

-- name: jobs_named
-- An owner's jobs by their ids.
SELECT * FROM rushes.job_seen WHERE id = ANY (%(ids)s) AND owner = %(owner)s;

-- name: jobs_newest
-- An owner's jobs, newest first.
SELECT * FROM rushes.job_seen WHERE owner = %(owner)s AND number < %(after)s ORDER BY number DESC LIMIT %(limit)s;

-- name: jobs_oldest
-- An owner's jobs, oldest first.
SELECT * FROM rushes.job_seen WHERE owner = %(owner)s AND number > %(after)s ORDER BY number LIMIT %(limit)s;

-- name: jobs_newest_in
-- An owner's jobs in one state, newest first; one that has only begun is kept as created.
SELECT * FROM rushes.job_seen
WHERE owner = %(owner)s AND kept_state = %(kept)s AND state = %(state)s AND number < %(after)s
ORDER BY number DESC LIMIT %(limit)s;

-- name: jobs_oldest_in
-- An owner's jobs in one state, oldest first.
SELECT * FROM rushes.job_seen
WHERE owner = %(owner)s AND kept_state = %(kept)s AND state = %(state)s AND number > %(after)s
ORDER BY number LIMIT %(limit)s;

-- name: jobs_last_finished
-- An owner's jobs in one final state, the last to finish first.
SELECT * FROM rushes.job_seen
WHERE owner = %(owner)s AND kept_state = %(state)s AND finished IS NOT NULL AND (finished, number) < (%(at)s, %(after)s)
ORDER BY finished DESC, number DESC LIMIT %(limit)s;

-- name: jobs_first_finished
-- An owner's jobs in one final state, the first to finish first.
SELECT * FROM rushes.job_seen
WHERE owner = %(owner)s AND kept_state = %(state)s AND finished IS NOT NULL AND (finished, number) > (%(at)s, %(after)s)
ORDER BY finished, number LIMIT %(limit)s;

-- name: tasks_of
-- Tasks of a job by key; all that the filters leave.
WITH job AS (SELECT number << 20 AS first FROM rushes.job WHERE id = %(job)s)
SELECT *, coalesce(%(at)s, (extract(epoch FROM now()) * 1000)::bigint) FROM rushes.task_seen
WHERE key > greatest(%(after)s, (SELECT first FROM job) - 1) AND key <= (SELECT first FROM job) + 1048575
    AND (%(state)s = '' OR state = %(state)s) AND (%(stage)s = '' OR stage = %(stage)s)
    AND (%(every)s OR id = ANY (%(ids)s))
ORDER BY key LIMIT %(limit)s;

-- name: tasks_all
-- Tasks of all jobs by key.
SELECT *, coalesce(%(at)s, (extract(epoch FROM now()) * 1000)::bigint) FROM rushes.task_seen
WHERE key > %(after)s AND (%(state)s = '' OR state = %(state)s) AND (%(stage)s = '' OR stage = %(stage)s)
ORDER BY key LIMIT %(limit)s;

-- name: tasks_named
-- Tasks by their ids.
SELECT *, coalesce(%(at)s, (extract(epoch FROM now()) * 1000)::bigint) FROM rushes.task_seen
WHERE id = ANY (%(ids)s) AND key > %(after)s AND (%(state)s = '' OR state = %(state)s)
    AND (%(stage)s = '' OR stage = %(stage)s)
ORDER BY key LIMIT %(limit)s;

-- name: tasks_undone
-- Tasks of all jobs in a state other than done: completed jobs (for dead: those that count none) are passed over.
SELECT seen.*, coalesce(%(at)s, (extract(epoch FROM now()) * 1000)::bigint) FROM (
    SELECT number FROM rushes.job
    WHERE state <> 'completed' AND (%(state)s <> 'dead' OR dead > 0) AND number >= %(after)s >> 20 ORDER BY number
) AS job CROSS JOIN LATERAL (
    SELECT * FROM rushes.task_seen
    WHERE key > %(after)s AND key BETWEEN job.number << 20 AND (job.number << 20) + 1048575 AND state = %(state)s
        AND (%(stage)s = '' OR stage = %(stage)s)
    ORDER BY key LIMIT %(limit)s) AS seen
ORDER BY seen.key LIMIT %(limit)s;

-- name: results
-- Which of these results exist.
SELECT key, output, manifest_sha256, size, count, schema_version, publishes FROM rushes.result
WHERE owner = %(owner)s AND key = ANY (%(keys)s);

-- name: events
-- Event rows of a job from the one that holds a number on.
WITH mine AS (SELECT number FROM rushes.job WHERE id = %(job)s)
SELECT job, n, seq, type, at, task, body FROM rushes.event
WHERE job = (SELECT number FROM mine) AND seq >= coalesce(
    (SELECT max(seq) FROM rushes.event WHERE job = (SELECT number FROM mine) AND seq <= %(after)s), 0)
ORDER BY seq LIMIT %(limit)s;

-- name: task_ids
-- The ids of tasks.
SELECT task, id FROM rushes.task_text WHERE task = ANY (%(keys)s::bigint[]);

-- name: log_lines
-- Log lines of a task's latest attempt that has any.
WITH mine AS (SELECT task FROM rushes.task_text WHERE id = %(task)s)
SELECT line, at, fence, text FROM rushes.log
WHERE task = (SELECT task FROM mine) AND line > %(after)s
    AND fence = (SELECT max(fence) FROM rushes.log WHERE task = (SELECT task FROM mine))
ORDER BY line LIMIT %(limit)s;

-- name: changed
-- Jobs that a transaction changed after a place, or one that was still under way then; and who is under way now. A
-- place that is still to come here is one of another database, from before a dump was restored.
SELECT job.id, changed::text, number, pg_current_snapshot()::text
FROM rushes.job_change JOIN rushes.job ON number = job_change.job
WHERE (changed, job_change.job) > (CASE WHEN %(top)s::xid8 < pg_snapshot_xmax(pg_current_snapshot())
    THEN %(top)s::xid8 ELSE '0'::xid8 END, %(number)s) OR changed = ANY (%(late)s::xid8[])
ORDER BY changed, job_change.job LIMIT %(limit)s;

-- name: restored
-- Jobs from a dump bear numbers of transactions that are still to come here.
UPDATE rushes.job_change SET changed = pg_current_xact_id() WHERE changed >= pg_snapshot_xmax(pg_current_snapshot())
RETURNING job;

-- name: workers
-- Every worker whose row is not over, with what it holds.
SELECT number, worker.id, host, boot, pid, pid_start, lanes, slots, machine, version, until, draining, note, started,
    coalesce(held.tasks, '{}'), coalesce(%(at)s, (extract(epoch FROM now()) * 1000)::bigint)
FROM rushes.worker LEFT JOIN (
    SELECT worker, array_agg(id ORDER BY task) AS tasks FROM rushes.task JOIN rushes.task_text ON task BETWEEN key AND last
    WHERE open AND worker IS NOT NULL GROUP BY worker) AS held ON held.worker = number
WHERE NOT over ORDER BY number;
