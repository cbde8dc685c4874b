-- Taking in: jobs, drafts, plans, arrivals. These files are written for PostgreSQL with values as :name; see dialect.

-- name: adopt_first
-- The first task of a job is done from the start.
UPDATE rushes.task SET state = 'done', unmet = 0, outcome = 'done', adopted = true, finished = :at WHERE key = :key;

-- name: job_rows
-- Job rows held by this transaction, locked in order so that no two wait for each other; and the time.
SELECT *, cancelled_stages, (SELECT wall FROM rushes.clock) FROM rushes.job WHERE number = ANY (:numbers) ORDER BY number FOR NO KEY UPDATE;

-- name: job_row
-- The same for one job by its id.
SELECT *, cancelled_stages, (SELECT wall FROM rushes.clock) FROM rushes.job WHERE id = :id FOR NO KEY UPDATE;

-- name: jobs_of
-- The same for the jobs of these tasks, and for jobs with tasks that need one of them.
SELECT *, cancelled_stages, (SELECT wall FROM rushes.clock) FROM rushes.job WHERE number IN (
    SELECT key >> 20 FROM rushes.task WHERE id = ANY (:ids)
    UNION SELECT need.task >> 20 FROM rushes.task JOIN rushes.need ON need.ref = task.key WHERE task.id = ANY (:ids))
ORDER BY number FOR NO KEY UPDATE;

-- name: free_jobs_of
-- The same without those that somebody else holds.
SELECT *, cancelled_stages, (SELECT wall FROM rushes.clock) FROM rushes.job WHERE number IN (
    SELECT key >> 20 FROM rushes.task WHERE id = ANY (:ids)
    UNION SELECT need.task >> 20 FROM rushes.task JOIN rushes.need ON need.ref = task.key WHERE task.id = ANY (:ids))
ORDER BY number FOR NO KEY UPDATE SKIP LOCKED;

-- name: replace_drafts
-- Drop what earlier attempts drafted, and what this attempt drafts again.
DELETE FROM rushes.draft WHERE job = :job AND (fence < :fence OR id = ANY (:ids));

-- name: count_drafts
-- How many rows an attempt has drafted, its facts included.
SELECT count(*) FROM rushes.draft WHERE job = :job;

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
-- A blob key with this content, once; of each key no two have the same time, so that their order is known.
INSERT INTO rushes.arrival (key, etag, at)
SELECT :key, :etag, CASE WHEN latest >= :at THEN latest + 1 ELSE :at END
FROM (SELECT coalesce(max(at), 0) AS latest FROM rushes.arrival WHERE key = :key) AS before
WHERE true ON CONFLICT DO NOTHING RETURNING key;

-- name: first_arrival
-- The first content of a blob key: that which its needs were met by.
SELECT etag FROM rushes.arrival WHERE key = :key ORDER BY at LIMIT 1;

-- name: jobs_begun_by
-- Jobs whose first task needed a blob key.
SELECT job.id FROM rushes.need_key JOIN rushes.job ON job.number = need_key.task >> 20
WHERE key = :key AND task & 1048575 = 0 ORDER BY job.id;

-- name: drop_arrivals
-- Arrivals of long ago: nobody waits for them any more.
DELETE FROM rushes.arrival WHERE at <= :before;

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
