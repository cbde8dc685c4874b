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
INSERT INTO rushes.job_text (job, team, request_id, name, recipe, payload)
SELECT number, '', id, id, 'bench', '{}' FROM rushes.job WHERE number BETWEEN %(first)s AND %(last)s;

-- name: task_texts
-- Their tasks: probe, forty chunks, join.
INSERT INTO rushes.task_text (task, created, chunk, place, id, stage, lane, spec)
SELECT (number << 20) + n, 0, CASE WHEN n BETWEEN 1 AND 40 THEN n - 1 END, n,
    id || CASE n WHEN 0 THEN '.probe' WHEN 41 THEN '.join' ELSE '.noop.' || lpad((n - 1)::text, 5, '0') END,
    CASE n WHEN 0 THEN 'probe' WHEN 41 THEN 'join' ELSE 'noop' END, 'cpu', %(spec)s
FROM rushes.job, generate_series(0, 41) AS n WHERE number BETWEEN %(first)s AND %(last)s ORDER BY number, n;

-- name: probes
-- Every probe is done.
INSERT INTO rushes.task_done (first, last, finished, progress, fence, failures, losses, adopted)
SELECT number << 20, number << 20, 0, 0, 1, 0, 0, false FROM rushes.job WHERE number BETWEEN %(first)s AND %(last)s;

-- name: tasks
-- The chunks are ready, as one run (or apart, as tasks are that became ready one by one); the joins wait for them.
INSERT INTO rushes.task (key, last, rank, open, state, unmet, lane)
SELECT min(task), max(task), 0, stage <> 'join', (CASE WHEN stage = 'join' THEN 'waiting' ELSE 'ready' END)::rushes.task_state,
    CASE WHEN stage = 'join' THEN 40 ELSE 0 END, lane
FROM rushes.task_text WHERE task >> 20 BETWEEN %(first)s AND %(last)s AND stage <> 'probe'
GROUP BY task >> 20, stage, lane, CASE WHEN %(apart)s THEN task END ORDER BY 1;

-- name: needs
-- What the joins need.
INSERT INTO rushes.need (ref, task)
SELECT (number << 20) + n, (number << 20) + 41 FROM rushes.job, generate_series(1, 40) AS n
WHERE number BETWEEN %(first)s AND %(last)s ORDER BY number, n;
