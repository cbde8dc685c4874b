-- What SQLite says in its own way.

-- name: claim
-- Lease the next ready tasks of some lanes (only those hinted at, unless it is about every one): higher priority first,
-- then older jobs, then plan order.
UPDATE task SET state = 'leased', worker = :number, fence = fence + 1, started = :at, outcome = NULL, progress = 0
WHERE key IN (
    SELECT ready.key FROM json_each(:lanes) AS wanted CROSS JOIN task AS ready ON ready.key IN (
        SELECT key FROM task WHERE state = 'ready' AND NOT parked AND due IS NULL AND lane = wanted.value
            AND (:every OR +id = ANY (:ids))
        ORDER BY rank, key LIMIT :n)
    ORDER BY ready.rank, ready.key LIMIT :n)
RETURNING rank, key, id, fence, stage, chunk, lane, (SELECT spec FROM task_spec WHERE task_spec.task = task.key),
    failures, losses;

-- name: claimable
-- Whether a lane has a ready task.
SELECT 1 FROM task WHERE state = 'ready' AND NOT parked AND due IS NULL AND lane = :lane LIMIT 1;

-- name: submit
-- A job with its texts, first task and first event, unless its id is taken.
INSERT INTO job (id, owner, state, priority, total, live, created, changed, queue)
VALUES (:id, :owner, 'created', :priority, 1, :live, :at, 0, :queue) ON CONFLICT (id) DO NOTHING;
INSERT INTO job_text (job, team, request_id, name, recipe, payload, facts)
SELECT number, :team, :request_id, :name, :recipe, :payload, '' FROM job WHERE id = :id AND last_event = 0;
INSERT INTO task (key, id, stage, chunk, lane, place, rank, state, parked, unmet, fence, adopted, failures, losses,
    progress, created)
SELECT number << 20, :task, :stage, :chunk, :lane, :place, -:priority, :state, 0, :unmet, 0, 0, 0, 0, 0, :at
FROM job WHERE id = :id AND last_event = 0;
INSERT INTO task_spec (task, spec) SELECT number << 20, :spec FROM job WHERE id = :id AND last_event = 0;
INSERT INTO event (job, seq, type, at, body)
SELECT number, 1, 'submitted', :at, :body FROM job WHERE id = :id AND last_event = 0;
UPDATE job SET last_event = 1, changed = (SELECT max(number) + 1 FROM change)
WHERE id = :id AND last_event = 0 RETURNING created;

-- name: finish
-- Done, where the lease is still this worker's at that fence. Before that, whoever needs these tasks has so many unmet
-- needs less; at none left one that waited is ready. Drafts of a job whose first task is done are taken.
UPDATE task SET unmet = max(unmet - met.n, 0),
    state = CASE WHEN state = 'waiting' AND unmet <= met.n THEN 'ready' ELSE state END
FROM (SELECT need.task, count(*) AS n FROM json_each(:rows) AS done
    CROSS JOIN task AS held ON held.id = value ->> 'id' AND held.fence = value ->> 'fence'
        AND +held.worker = (SELECT number FROM worker WHERE worker.id = :worker)
    CROSS JOIN need ON need.ref = held.key GROUP BY need.task) AS met
WHERE task.key = met.task AND unmet > 0 RETURNING 'counted', key, id, state, NULL;
UPDATE task SET state = 'done', worker = NULL, outcome = 'done', adopted = done.adopted, finished = :at
FROM (SELECT value ->> 'id' AS id, value ->> 'fence' AS fence, value ->> 'adopted' AS adopted FROM json_each(:rows)) AS done
WHERE task.id = done.id AND +task.fence = done.fence
    AND +task.worker = (SELECT number FROM worker WHERE worker.id = :worker)
RETURNING 'done', key, id, NULL, fence;
DELETE FROM draft WHERE job IN (SELECT held.key >> 20 FROM json_each(:rows) AS done CROSS JOIN task AS held
    ON held.id = value ->> 'id' AND held.key & 1048575 = 0 AND +held.state = 'done')
RETURNING 'draft', job, id, body, fence;

-- name: keep_progress
-- How far leases have come.
UPDATE task SET progress = told.progress
FROM (SELECT value ->> 'id' AS id, value ->> 'fence' AS fence, value ->> 'progress' AS progress FROM json_each(:rows)) AS told
WHERE task.id = told.id AND +task.fence = told.fence AND +task.worker = :number;

-- name: save_job
-- Write a job row, which started when its first task did; with new events its change number is the highest.
UPDATE job SET state = :state, priority = :priority, paused = :paused, cancelled = :cancelled, opened = :opened,
    total = :total, done = :done, dead = :dead, live = :live, losses = :losses, failures = :failures,
    last_event = :last_event, finished = :finished, cancelled_stages = :cancelled_stages,
    started = coalesce(started, (SELECT task.started FROM task WHERE task.key = job.number << 20)),
    changed = CASE WHEN :changed THEN (SELECT max(number) + 1 FROM change) ELSE changed END
WHERE number = :number;

-- name: changed
-- Jobs whose event number moved since a change number.
SELECT id, changed FROM job WHERE changed > :after ORDER BY changed LIMIT :limit;

-- name: newest_change
-- The highest change number that was given.
SELECT max(number) FROM change;

-- name: hold_keys
-- Nothing: there is one writer at a time.
SELECT 1 WHERE :keys IS NULL;

-- name: to_sweep
-- Whether a sweep has something to write besides workers that end and debts that are paid.
SELECT EXISTS (SELECT 1 FROM worker JOIN task ON task.worker = worker.number AND task.state = 'leased' WHERE over)
    OR EXISTS (SELECT 1 FROM draft JOIN job ON job.number = draft.job WHERE job.finished IS NOT NULL)
    OR EXISTS (SELECT 1 FROM task WHERE due <= :now);

-- name: home
-- A fact about the home.
SELECT value FROM home WHERE name = :name;

-- name: set_home
-- Keep a fact about the home.
INSERT INTO home (name, value) VALUES (:name, :value) ON CONFLICT DO UPDATE SET value = excluded.value;

-- name: workers_left
-- Workers whose rows another machine left behind.
SELECT id FROM worker WHERE NOT over;

-- name: end_all_leases
-- No worker of before can still be here.
UPDATE worker SET until = 0 WHERE NOT over;

-- name: end_all_backoffs
-- Times of another boot mean nothing here: what waits for one is due.
UPDATE task SET due = 0 WHERE due IS NOT NULL;

-- name: forget_change
-- The highest change number is kept: readers have seen it, and none comes twice.
INSERT INTO home (name, value) SELECT 'changed', max(number) FROM change WHERE :job > 0
ON CONFLICT DO UPDATE SET value = excluded.value;

-- name: unfinished_jobs
-- Jobs that are not final.
SELECT number FROM job WHERE finished IS NULL ORDER BY number;
