-- Looking: jobs, tasks, events.

-- name: job
-- One job.
SELECT * FROM rushes.job_listed WHERE id = :id;

-- name: jobs_named
-- An owner's jobs by their ids.
SELECT * FROM rushes.job_listed
WHERE number IN (SELECT number FROM rushes.job WHERE id = ANY (:ids)) AND owner = :owner;

-- name: jobs_newest
-- An owner's jobs, newest first.
SELECT * FROM rushes.job_listed WHERE owner = :owner AND number < :after ORDER BY number DESC LIMIT :limit;

-- name: jobs_oldest
-- An owner's jobs, oldest first.
SELECT * FROM rushes.job_listed WHERE owner = :owner AND number > :after ORDER BY number LIMIT :limit;

-- name: jobs_newest_in
-- An owner's jobs in one state, newest first.
SELECT * FROM rushes.job_listed WHERE owner = :owner AND kept_state = :state AND state = :state AND number < :after
ORDER BY number DESC LIMIT :limit;

-- name: jobs_oldest_in
-- An owner's jobs in one state, oldest first.
SELECT * FROM rushes.job_listed WHERE owner = :owner AND kept_state = :state AND state = :state AND number > :after
ORDER BY number LIMIT :limit;

-- name: jobs_newest_begun
-- An owner's jobs whose first task is leased, newest first: found by what is leased, because their rows say 'created'.
SELECT * FROM rushes.job_listed WHERE owner = :owner AND state = :state AND number < :after
    AND number IN (SELECT key >> 20 FROM rushes.task WHERE task.state = 'leased')
ORDER BY number DESC LIMIT :limit;

-- name: jobs_oldest_begun
-- The same, oldest first.
SELECT * FROM rushes.job_listed WHERE owner = :owner AND state = :state AND number > :after
    AND number IN (SELECT key >> 20 FROM rushes.task WHERE task.state = 'leased')
ORDER BY number LIMIT :limit;

-- name: jobs_last_finished
-- An owner's jobs in one final state, the last to finish first.
SELECT * FROM rushes.job_listed
WHERE owner = :owner AND kept_state = :state AND finished IS NOT NULL AND (finished, number) < (:at, :after)
ORDER BY finished DESC, number DESC LIMIT :limit;

-- name: jobs_first_finished
-- An owner's jobs in one final state, the first to finish first.
SELECT * FROM rushes.job_listed
WHERE owner = :owner AND kept_state = :state AND finished IS NOT NULL AND (finished, number) > (:at, :after)
ORDER BY finished, number LIMIT :limit;

-- name: jobs_newest_queued
-- An owner's jobs of one queue, newest first; in one state, or in any.
SELECT * FROM rushes.job_listed
WHERE owner = :owner AND queue = :queue AND number < :after AND (:state = '' OR state = :state)
ORDER BY number DESC LIMIT :limit;

-- name: jobs_oldest_queued
-- The same, oldest first.
SELECT * FROM rushes.job_listed
WHERE owner = :owner AND queue = :queue AND number > :after AND (:state = '' OR state = :state)
ORDER BY number LIMIT :limit;

-- name: job_number
-- The number of a job.
SELECT number FROM rushes.job WHERE id = :id;

-- name: tasks_between
-- Tasks by key; all that the filters leave.
SELECT * FROM rushes.task_seen
WHERE key > :after AND key <= :last AND (:state = '' OR state = :state) AND (:stage = '' OR stage = :stage)
    AND (:every OR id = ANY (:ids))
ORDER BY key LIMIT :limit;

-- name: tasks_named
-- Tasks by their ids.
SELECT * FROM rushes.task_seen
WHERE id = ANY (:ids) AND key > :after AND (:state = '' OR state = :state) AND (:stage = '' OR stage = :stage)
ORDER BY key LIMIT :limit;

-- name: tasks_undone
-- Tasks of all jobs in a state other than done: completed jobs (for dead: those that count none) are passed over.
SELECT * FROM rushes.task_seen WHERE key IN (
    SELECT task.key FROM rushes.job CROSS JOIN rushes.task
    WHERE job.state <> 'completed' AND (:state <> 'dead' OR job.dead > 0) AND job.number >= :after >> 20
        AND task.key BETWEEN job.number << 20 AND (job.number << 20) + 1048575 AND task.key > :after
        AND CASE WHEN job.cancelled AND task.state NOT IN ('done', 'dead') THEN 'cancelled' ELSE task.state END = :state
        AND (:stage = '' OR task.stage = :stage)
    ORDER BY task.key LIMIT :limit
) ORDER BY key;

-- name: ready_counts
-- What a claim may take, by lane and stage, and how old the oldest is.
SELECT lane, stage, count(*), coalesce(:at, (SELECT wall FROM rushes.clock)) - min(created) FROM (
    SELECT lane, stage, created FROM rushes.task WHERE state = 'ready' AND NOT parked AND due IS NULL LIMIT :most) AS ready
GROUP BY lane, stage ORDER BY lane, stage;

-- name: stage_counts
-- What the tasks of some jobs add up to, by lane and stage.
SELECT lane, stage, sum(ready), coalesce(:at, (SELECT wall FROM rushes.clock)) - min(CASE WHEN ready = 1 THEN created END),
    sum(done), sum(dead), sum(failures), sum(CASE WHEN dead = 1 AND failures > 0 THEN failures - 1 ELSE failures END),
    sum(losses), sum(CASE WHEN done = 1 AND finished > started THEN finished - started ELSE 0 END)
FROM (SELECT task.lane, task.stage, task.created, task.started, task.finished, task.failures, task.losses,
        CASE WHEN task.state = 'ready' AND NOT task.parked AND task.due IS NULL THEN 1 ELSE 0 END AS ready,
        CASE WHEN task.state = 'done' AND NOT task.adopted THEN 1 ELSE 0 END AS done,
        CASE WHEN task.state = 'dead' THEN 1 ELSE 0 END AS dead
    FROM rushes.job CROSS JOIN rushes.task
    WHERE job.id = ANY (:ids) AND task.key BETWEEN job.number << 20 AND (job.number << 20) + 1048575) AS one
GROUP BY lane, stage ORDER BY lane, stage;

-- name: held
-- What every worker holds.
SELECT worker, id FROM rushes.task WHERE state = 'leased' ORDER BY worker, key;

-- name: events
-- Events of a job after a number.
SELECT seq, type, at, task, body FROM rushes.event
WHERE job = (SELECT number FROM rushes.job WHERE id = :job) AND seq > :after
    AND (:every OR type = ANY (:types)) AND (:task = '' OR task = :task)
ORDER BY seq LIMIT :limit;

-- name: log_lines
-- Log lines of a task's latest attempt that has any.
SELECT line, at, fence, text FROM rushes.log
WHERE task = :task AND fence = (SELECT max(fence) FROM rushes.log WHERE task = :task) AND line > :after
ORDER BY line LIMIT :limit;
