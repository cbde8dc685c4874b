-- Taking in: jobs, drafts, plans, arrivals. These files are written for PostgreSQL with values as :name; see dialect.

-- name: insert_job
-- A new job, unless its id is taken.
INSERT INTO rushes.job (id, owner, state, priority, created) VALUES (:id, :owner, 'created', :priority, :at)
ON CONFLICT (id) DO NOTHING RETURNING number;

-- name: job_rows
-- Job rows held by this transaction, locked in order so that no two wait for each other.
SELECT number, id, owner, state, priority, paused, cancelled, opened, total, done, dead, live, losses, failures,
    last_event, finished
FROM rushes.job WHERE number = ANY (:numbers) ORDER BY number FOR NO KEY UPDATE;

-- name: free_job_rows
-- The same for those that nobody else holds.
SELECT number, id, owner, state, priority, paused, cancelled, opened, total, done, dead, live, losses, failures,
    last_event, finished
FROM rushes.job WHERE number = ANY (:numbers) ORDER BY number FOR NO KEY UPDATE SKIP LOCKED;

-- name: job_row
-- The same for one job by its id.
SELECT number, id, owner, state, priority, paused, cancelled, opened, total, done, dead, live, losses, failures,
    last_event, finished
FROM rushes.job WHERE id = :id FOR NO KEY UPDATE;

-- name: jobs_of_tasks
-- The numbers of the jobs of these tasks, and of jobs with tasks that need one of them.
SELECT key >> 20 FROM rushes.task WHERE id = ANY (:ids)
UNION
SELECT need.task >> 20 FROM rushes.task JOIN rushes.need ON need.ref = task.key WHERE task.id = ANY (:ids);

-- name: save_job
-- Write a job row; it started when its first task did.
UPDATE rushes.job SET state = :state, priority = :priority, paused = :paused, cancelled = :cancelled, opened = :opened,
    total = :total, done = :done, dead = :dead, live = :live, losses = :losses, failures = :failures,
    last_event = :last_event, finished = :finished,
    started = coalesce(started, (SELECT task.started FROM rushes.task WHERE task.key = job.number << 20))
WHERE number = :number;

-- name: replace_drafts
-- Drop what earlier attempts drafted, and what this attempt drafts again.
DELETE FROM rushes.draft WHERE job = :job AND (fence < :fence OR id = ANY (:ids));

-- name: count_drafts
-- How many rows an attempt has drafted, its facts included.
SELECT count(*) FROM rushes.draft WHERE job = :job;

-- name: drafts
-- What an attempt has drafted.
SELECT id, body FROM rushes.draft WHERE job = :job AND fence = :fence;

-- name: drop_drafts
-- The plan of a job is open.
DELETE FROM rushes.draft WHERE job = :job;

-- name: keep_facts
-- What the first task found.
UPDATE rushes.job_text SET facts = :facts WHERE job = :job;

-- name: tasks_by_id
-- Tasks that a plan names.
SELECT id, key, state FROM rushes.task WHERE id = ANY (:ids);

-- name: arrived_keys
-- Which of these blob keys have arrived.
SELECT DISTINCT key FROM rushes.arrival WHERE key = ANY (:keys);

-- name: add_arrival
-- A blob key with this content, once.
INSERT INTO rushes.arrival (key, etag, at) VALUES (:key, :etag, :at) ON CONFLICT DO NOTHING RETURNING key;

-- name: jobs_awaiting
-- Jobs with tasks that need a blob key.
SELECT DISTINCT task >> 20 FROM rushes.need_key WHERE key = :key AND NOT met;

-- name: meet_key
-- The needs of a blob key are met.
UPDATE rushes.need_key SET met = true WHERE key = :key AND NOT met RETURNING task;

-- name: count_down_key
-- One unmet need less for each of these tasks; at none left one that waited is ready.
UPDATE rushes.task SET unmet = unmet - 1,
    state = CASE WHEN state = 'waiting' AND unmet = 1 THEN 'ready' ELSE state END
WHERE key = ANY (:keys) AND unmet > 0 RETURNING key, id, state;

-- name: park_tasks
-- Ready tasks of a stopped job are hidden from claims.
UPDATE rushes.task SET parked = true WHERE key = ANY (:keys);
