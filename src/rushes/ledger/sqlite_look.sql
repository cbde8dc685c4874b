-- Looking: jobs, tasks, events, changes.

-- name: job
-- One job.
SELECT * FROM job_seen WHERE id = ?;

-- name: jobs_named
-- An owner's jobs by their ids.
SELECT * FROM job_seen WHERE id IN (SELECT value FROM json_each(?)) AND owner = ?;

-- name: jobs_newest
-- An owner's jobs, newest first.
SELECT * FROM job_seen WHERE owner = ? AND number < ? ORDER BY number DESC LIMIT ?;

-- name: jobs_oldest
-- An owner's jobs, oldest first.
SELECT * FROM job_seen WHERE owner = ? AND number > ? ORDER BY number LIMIT ?;

-- name: jobs_newest_in
-- An owner's jobs in one state, newest first.
SELECT * FROM job_seen WHERE owner = ? AND state = ? AND finished IS NULL AND number < ? ORDER BY number DESC LIMIT ?;

-- name: jobs_oldest_in
-- An owner's jobs in one state, oldest first.
SELECT * FROM job_seen WHERE owner = ? AND state = ? AND finished IS NULL AND number > ? ORDER BY number LIMIT ?;

-- name: jobs_last_finished
-- An owner's jobs in one final state, the last to finish first.
SELECT * FROM job_seen WHERE owner = ? AND state = ? AND finished IS NOT NULL AND (finished, number) < (?, ?)
ORDER BY finished DESC, number DESC LIMIT ?;

-- name: jobs_first_finished
-- An owner's jobs in one final state, the first to finish first.
SELECT * FROM job_seen WHERE owner = ? AND state = ? AND finished IS NOT NULL AND (finished, number) > (?, ?)
ORDER BY finished, number LIMIT ?;

-- name: tasks_between
-- Tasks by key; all that the filters leave.
SELECT * FROM task_seen
WHERE key > ?1 AND key <= ?2 AND (?3 = '' OR state = ?3) AND (?4 = '' OR stage = ?4)
    AND (?5 = '[]' OR id IN (SELECT value FROM json_each(?5)))
ORDER BY key LIMIT ?6;

-- name: tasks_named
-- Tasks by their ids.
SELECT * FROM task_seen
WHERE key IN (SELECT task FROM task_text WHERE id IN (SELECT value FROM json_each(?1))) AND key > ?2 AND (?3 = '' OR state = ?3) AND (?4 = '' OR stage = ?4)
ORDER BY key LIMIT ?5;

-- name: tasks_undone
-- Tasks of all jobs in a state other than done: completed jobs (for dead: those that count none) are passed over.
SELECT * FROM task_seen WHERE key IN (
    SELECT task.key FROM job
    CROSS JOIN task ON task.key BETWEEN max(?1 + 1, job.number << 20) AND (job.number << 20) + 1048575
    CROSS JOIN task_text ON task_text.task = task.key
    WHERE job.state <> 'completed' AND (?2 <> 'dead' OR job.dead > 0) AND job.number >= ?1 >> 20
        AND (?3 = '' OR task_text.stage = ?3)
        AND CASE WHEN job.cancelled AND task.state NOT IN ('done', 'dead') THEN 'cancelled' ELSE task.state END = ?2
    ORDER BY task.key LIMIT ?4
) ORDER BY key;

-- name: events
-- Event rows of a job from the one that holds a number on.
SELECT seq, type, at, task, body FROM event
WHERE job = ?1 AND seq >= coalesce((SELECT max(seq) FROM event WHERE job = ?1 AND seq <= ?2), 0)
ORDER BY seq LIMIT ?3;

-- name: ids
-- The ids of neighbouring tasks.
SELECT id FROM task_text WHERE task BETWEEN ? AND ? ORDER BY task;

-- name: job_number
-- The number of a job.
SELECT number FROM job WHERE id = ?;

-- name: log_lines
-- Log lines of a task's latest attempt that has any.
SELECT line, at, fence, text FROM log
WHERE task = (SELECT task FROM task_text WHERE id = ?1)
    AND fence = (SELECT max(fence) FROM log WHERE task = (SELECT task FROM task_text WHERE id = ?1)) AND line > ?2
ORDER BY line LIMIT ?3;

-- name: changed
-- Jobs whose event number moved since a change number.
SELECT id, changed FROM job WHERE changed > ? ORDER BY changed LIMIT ?;

-- name: held
-- What every worker holds.
SELECT DISTINCT hold.worker, id, key
FROM hold CROSS JOIN task ON key BETWEEN first AND last AND +task.worker = hold.worker AND +state = 'leased'
CROSS JOIN task_text ON task_text.task = task.key
ORDER BY hold.worker, key;
