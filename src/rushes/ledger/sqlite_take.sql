-- Taking in: jobs, drafts, plans, arrivals.

-- name: job_rows
-- Job rows by number, for a transaction that changes them.
SELECT number, id, owner, state, priority, paused, cancelled, opened, total, done, dead, live, losses, failures,
    last_event, started, finished, chunking
FROM job WHERE number IN (SELECT value FROM json_each(?));

-- name: job_row
-- The same for one job by its id.
SELECT number, id, owner, state, priority, paused, cancelled, opened, total, done, dead, live, losses, failures,
    last_event, started, finished, chunking
FROM job WHERE id = ?;

-- name: job_told
-- Write a job row that has new events: its change number is the highest.
UPDATE job SET changed = (SELECT max(changed) + 1 FROM job), state = ?, priority = ?, paused = ?, cancelled = ?,
    opened = ?, chunking = ?, total = ?, done = ?, dead = ?, live = ?, losses = ?, failures = ?, last_event = ?,
    started = ?, finished = ?
WHERE number = ?;

-- name: job_quiet
-- Write a job row without new events.
UPDATE job SET state = ?, priority = ?, paused = ?, cancelled = ?, opened = ?, chunking = ?, total = ?, done = ?,
    dead = ?, live = ?, losses = ?, failures = ?, last_event = ?, started = ?, finished = ?
WHERE number = ?;

-- name: event_add
-- Events of one type in one row.
INSERT INTO event (job, seq, n, type, at, task, body) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: job_add
-- A new job, unless its id is taken.
INSERT INTO job (id, owner, state, priority, created) VALUES (?, ?, 'created', ?, ?)
ON CONFLICT (id) DO NOTHING;

-- name: job_text_add
-- The texts of a new job.
INSERT INTO job_text (job, team, request_id, name, recipe, payload) VALUES (?, ?, ?, ?, ?, ?);

-- name: drafts_drop
-- Forget drafts of earlier attempts.
DELETE FROM draft WHERE job = ? AND fence < ?;

-- name: draft_add
-- One task of a plan that is being written; written again, it changes nothing.
INSERT INTO draft (job, fence, id, stage, chunk, lane, place, adopted, needs, spec)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET stage = excluded.stage, chunk = excluded.chunk, lane = excluded.lane,
    place = excluded.place, adopted = excluded.adopted, needs = excluded.needs, spec = excluded.spec;

-- name: draft_facts
-- What the first task found, until the plan opens.
UPDATE job_text SET drafted_fence = ?, drafted_facts = ? WHERE job = ?;

-- name: draft_count
-- How many tasks an attempt has drafted.
SELECT count(*) FROM draft WHERE job = ? AND fence = ?;

-- name: facts_open
-- The facts of the attempt that opens the plan stand on the job.
UPDATE job_text SET facts = CASE WHEN drafted_fence = ? THEN drafted_facts ELSE facts END, drafted_facts = ''
WHERE job = ?;

-- name: plant_texts
-- Drafts become tasks with places in plan order: what never changes about them.
INSERT INTO task_text (task, id, stage, chunk, place, created, spec)
SELECT ?1 + row_number() OVER (ORDER BY place, id), id, stage, chunk, place, ?2, spec
FROM draft
WHERE job = ?3 AND fence = ?4 AND NOT EXISTS (SELECT 1 FROM task_text WHERE task_text.id = draft.id);

-- name: plant_tasks
-- Adopted ones are done, the others wait.
INSERT INTO task (key, lane, rank, state, outcome, started, finished)
SELECT task_text.task, lane, ?1, CASE WHEN adopted THEN 'done' ELSE 'waiting' END, CASE WHEN adopted THEN 'adopted' ELSE 'no' END,
    ?2, ?2
FROM task_text JOIN draft ON draft.job = ?3 AND draft.fence = ?4 AND draft.id = task_text.id
WHERE task_text.task BETWEEN ?5 AND ?6;

-- name: plant_needs
-- A row for each task that a new task needs; one that is done from the start needs nothing more.
INSERT OR IGNORE INTO need (ref, task, kept)
SELECT other.task, mine.task, draft.adopted
FROM draft CROSS JOIN json_each(draft.needs) AS need
CROSS JOIN task_text AS mine ON mine.id = draft.id
CROSS JOIN task_text AS other ON other.id = need.value ->> 0
WHERE draft.job = ? AND draft.fence = ? AND NOT need.value ->> 1;

-- name: plant_key_needs
-- A row for each blob key that a new task needs; met at once if it arrived before.
INSERT OR IGNORE INTO need_key (key, task, met)
SELECT need.value ->> 0, mine.task, EXISTS (SELECT 1 FROM arrival WHERE arrival.key = need.value ->> 0)
FROM draft CROSS JOIN json_each(draft.needs) AS need
CROSS JOIN task_text AS mine ON mine.id = draft.id
WHERE draft.job = ? AND draft.fence = ? AND NOT draft.adopted AND need.value ->> 1;

-- name: plant_counts
-- Needs not met, counted on the new tasks; a task that nobody knows is never met.
UPDATE task SET unmet = open.n
FROM (
    SELECT mine.task AS key, count(DISTINCT need.value) AS n
    FROM draft CROSS JOIN task_text AS mine ON mine.id = draft.id CROSS JOIN json_each(draft.needs) AS need
    WHERE draft.job = ? AND draft.fence = ? AND NOT draft.adopted AND CASE WHEN need.value ->> 1
        THEN NOT EXISTS (SELECT 1 FROM arrival WHERE arrival.key = need.value ->> 0)
        ELSE NOT EXISTS (SELECT 1 FROM task_text AS other JOIN task ON task.key = other.task
            WHERE other.id = need.value ->> 0 AND task.state = 'done') END
    GROUP BY mine.task
) AS open
WHERE task.key = open.key;

-- name: plant_ready
-- New tasks without unmet needs are ready, parked if their job is stopped.
UPDATE task SET state = 'ready', parked = ?
WHERE key BETWEEN ? AND ? AND state = 'waiting' AND unmet = 0
RETURNING key, (SELECT id FROM task_text WHERE task_text.task = task.key);

-- name: plant_adopted
-- New tasks that are done from the start, in plan order.
SELECT key FROM task WHERE key BETWEEN ? AND ? AND outcome = 'adopted' ORDER BY key;

-- name: plant_size
-- How many tasks were added.
SELECT count(*) FROM task WHERE key BETWEEN ? AND ?;

-- name: drafts_done
-- The drafts of a job whose plan is open.
DELETE FROM draft WHERE job = ?;

-- name: arrival_add
-- A blob key with this content, once.
INSERT INTO arrival (key, etag, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: meet_key
-- The needs of a blob key are met.
UPDATE need_key SET met = 1 WHERE key = ? AND NOT met RETURNING task;
