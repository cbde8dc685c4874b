-- Jobs of forty tasks and a join, put in by the thousand: what the verbs would leave, without the way there.

-- name: jobs
-- Jobs whose plan is open.
INSERT INTO rushes.job (id, owner, state, priority, opened, total, done, live, last_event, created, started)
SELECT 'job_' || substr(md5(%(name)s || n), 1, 16), 'bench', 'chunking_complete', 0, true, 42, 1, 40, 0, 0, 0
FROM generate_series(1, %(jobs)s) AS n RETURNING number;

-- name: changes
-- Each has changed.
INSERT INTO rushes.job_change SELECT number, pg_current_xact_id() FROM rushes.job WHERE number BETWEEN %(first)s AND %(last)s;

-- name: texts
-- Their texts.
INSERT INTO rushes.job_text (job, team, request_id, name, recipe, payload, facts)
SELECT number, '', id, id, 'bench', '{}', '' FROM rushes.job WHERE number BETWEEN %(first)s AND %(last)s;

-- name: tasks
-- Their tasks: a probe that is done, forty chunks that are ready, and a join that waits for them.
INSERT INTO rushes.task (key, id, stage, chunk, lane, place, rank, state, parked, unmet, fence, outcome, adopted,
    failures, losses, progress, created)
SELECT (number << 20) + n,
    job.id || CASE n WHEN 0 THEN '.probe' WHEN 41 THEN '.join' ELSE '.noop.' || lpad((n - 1)::text, 5, '0') END,
    CASE n WHEN 0 THEN 'probe' WHEN 41 THEN 'join' ELSE 'noop' END, CASE WHEN n BETWEEN 1 AND 40 THEN n - 1 END, 'cpu',
    n, 0, CASE n WHEN 0 THEN 'done' WHEN 41 THEN 'waiting' ELSE 'ready' END, false, CASE n WHEN 41 THEN 40 ELSE 0 END,
    CASE n WHEN 0 THEN 1 ELSE 0 END, CASE n WHEN 0 THEN 'done' END, false, 0, 0, 0, 0
FROM rushes.job, generate_series(0, 41) AS n WHERE number BETWEEN %(first)s AND %(last)s ORDER BY number, n;

-- name: specs
-- What each is asked to do.
INSERT INTO rushes.task_spec (task, spec)
SELECT key, %(spec)s FROM rushes.task WHERE key >> 20 BETWEEN %(first)s AND %(last)s ORDER BY key;

-- name: needs
-- What the joins need.
INSERT INTO rushes.need (ref, task)
SELECT (number << 20) + n, (number << 20) + 41 FROM rushes.job, generate_series(1, 40) AS n
WHERE number BETWEEN %(first)s AND %(last)s ORDER BY number, n;
