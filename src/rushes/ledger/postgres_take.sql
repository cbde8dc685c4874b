-- Taking in: jobs, drafts, plans, arrivals.

-- name: hold_jobs
-- Job rows by number, held by this transaction, locked in order so that no two wait for each other.
SELECT number, id, owner, state, priority, paused, cancelled, opened, total, done, dead, live, losses, failures, last_event,
    coalesce(started, (SELECT started FROM rushes.task WHERE key = number << 20)), finished, false, needed
FROM rushes.job
WHERE number = ANY (%(numbers)s::bigint[]) ORDER BY number FOR NO KEY UPDATE;

-- name: hold_free_jobs
-- The same for those that nobody else holds.
SELECT number, id, owner, state, priority, paused, cancelled, opened, total, done, dead, live, losses, failures, last_event,
    coalesce(started, (SELECT started FROM rushes.task WHERE key = number << 20)), finished, false, needed
FROM rushes.job
WHERE number = ANY (%(numbers)s::bigint[]) ORDER BY number FOR NO KEY UPDATE SKIP LOCKED;

-- name: hold_job
-- The same for one job by its id.
SELECT number, id, owner, state, priority, paused, cancelled, opened, total, done, dead, live, losses, failures, last_event,
    coalesce(started, (SELECT started FROM rushes.task WHERE key = number << 20)), finished, false, needed
FROM rushes.job
WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: jobs_save
-- Write job rows with their new events, those of one type and moment in one row; jobs with any bear the number of this
-- transaction.
WITH row AS (
    SELECT * FROM unnest(%(number)s::bigint[], %(told)s::boolean[], %(state)s::text[], %(priority)s::integer[],
        %(paused)s::smallint[], %(cancelled)s::boolean[], %(opened)s::boolean[], %(total)s::integer[],
        %(done)s::integer[], %(dead)s::integer[], %(live)s::integer[], %(losses)s::integer[], %(failures)s::integer[],
        %(last_event)s::integer[], %(started)s::bigint[], %(finished)s::bigint[]) AS r(number, told, state, priority,
        paused, cancelled, opened, total, done, dead, live, losses, failures, last_event, started, finished)
), moved AS (
    UPDATE rushes.job_change SET changed = pg_current_xact_id() FROM row WHERE job = row.number AND row.told
), events AS (
    INSERT INTO rushes.event (job, seq, n, type, at, task, body)
    SELECT job, seq, n, type, at, nullif(task, ''), body
    FROM unnest(%(job)s::bigint[], %(seq)s::integer[], %(n)s::integer[], %(type)s::text[], %(at)s::bigint[],
        %(task)s::text[], %(body)s::text[]) AS r(job, seq, n, type, at, task, body)
)
UPDATE rushes.job SET state = r.state, priority = r.priority, paused = r.paused, cancelled = r.cancelled,
    opened = r.opened, total = r.total, done = r.done, dead = r.dead, live = r.live, losses = r.losses,
    failures = r.failures, last_event = r.last_event, started = r.started, finished = r.finished
FROM row AS r WHERE job.number = r.number;

-- name: job_add
-- A new job, unless its id is taken.
WITH made AS (
    INSERT INTO rushes.job (id, owner, state, priority, created)
    VALUES (%(id)s, %(owner)s, 'created', %(priority)s,
        coalesce(%(at)s, (extract(epoch FROM now()) * 1000)::bigint))
    ON CONFLICT (id) DO NOTHING RETURNING number
), changed AS (
    INSERT INTO rushes.job_change SELECT number, pg_current_xact_id() FROM made
)
SELECT number FROM made;

-- name: job_submit
-- A new job with a first task that needs nothing and its first event, unless its id is taken; the row of `job_seen`.
WITH made AS (
    INSERT INTO rushes.job (id, owner, state, priority, total, live, last_event, created)
    VALUES (%(id)s, %(owner)s, 'created', %(priority)s, 1, 1, 1,
        coalesce(%(at)s, (extract(epoch FROM now()) * 1000)::bigint))
    ON CONFLICT (id) DO NOTHING RETURNING number, created
), changed AS (
    INSERT INTO rushes.job_change SELECT number, pg_current_xact_id() FROM made
), said AS (
    INSERT INTO rushes.job_text (job, team, request_id, name, recipe, payload)
    SELECT number, %(team)s, %(request_id)s, %(name)s, %(recipe)s, %(payload)s FROM made
), first AS (
    INSERT INTO rushes.task_text (task, id, stage, chunk, lane, place, created, spec)
    SELECT number << 20, %(task)s, %(stage)s, %(chunk)s, %(lane)s, %(place)s, created, %(spec)s FROM made
), ready AS (
    INSERT INTO rushes.task (key, last, rank, state, open, lane)
    SELECT number << 20, number << 20, -%(priority)s, 'ready', true, %(lane)s FROM made
), told AS (
    INSERT INTO rushes.event (job, seq, n, type, at, body) SELECT number, 1, 1, 'submitted', created, %(told)s FROM made
)
SELECT %(id)s, %(owner)s, %(team)s, %(request_id)s, %(name)s, %(recipe)s, %(payload)s, '', 'created', false,
    %(priority)s::integer, 1, 0, 0, 1, 0, 0, 1, created, NULL, NULL, number, 'created' FROM made;

-- name: job_text_add
-- The texts of a new job.
INSERT INTO rushes.job_text (job, team, request_id, name, recipe, payload)
VALUES (%(job)s, %(team)s, %(request_id)s, %(name)s, %(recipe)s, %(payload)s);

-- name: drafts_drop
-- Forget drafts of earlier attempts.
DELETE FROM rushes.draft WHERE job = %(job)s AND fence < %(fence)s;

-- name: drafts_add
-- Tasks of a plan that is being written; written again, the last word counts.
INSERT INTO rushes.draft (job, fence, id, stage, chunk, lane, place, adopted, needs, spec)
SELECT %(job)s, %(fence)s, id, stage, chunk, lane, place, adopted, needs, spec
FROM json_to_recordset(%(rows)s::json)
    AS r(id text, stage text, chunk integer, lane text, place integer, adopted boolean, needs json, spec text)
ON CONFLICT (job, fence, id) DO UPDATE SET stage = excluded.stage, chunk = excluded.chunk, lane = excluded.lane,
    place = excluded.place, adopted = excluded.adopted, needs = excluded.needs, spec = excluded.spec;

-- name: draft_facts
-- What the first task found, until the plan opens.
UPDATE rushes.job_text SET drafted_fence = %(fence)s, drafted_facts = %(facts)s WHERE job = %(job)s;

-- name: draft_count
-- How many tasks an attempt has drafted.
SELECT count(*) FROM rushes.draft WHERE job = %(job)s AND fence = %(fence)s;

-- name: facts_open
-- The facts of the attempt that opens the plan stand on the job.
UPDATE rushes.job_text
SET facts = CASE WHEN drafted_fence = %(fence)s THEN drafted_facts ELSE facts END, drafted_facts = ''
WHERE job = %(job)s;

-- name: hold_keys
-- Whoever needs a blob key, or says that it is there, holds its name until the commit: neither can miss the other.
SELECT pg_advisory_xact_lock(7310028, hash) FROM (
    SELECT DISTINCT hashtext(need ->> 0) AS hash FROM rushes.draft, json_array_elements(needs) AS need
    WHERE job = %(job)s AND fence = %(fence)s AND (need ->> 1)::boolean ORDER BY 1) AS keys;

-- name: hold_key
-- The same for one key.
SELECT pg_advisory_xact_lock(7310028, hashtext(%(key)s));

-- name: needed_jobs
-- Other jobs that have a task which a draft needs.
SELECT DISTINCT other.task >> 20
FROM rushes.draft CROSS JOIN json_array_elements(needs) AS need
JOIN rushes.task_text AS other ON other.id = need ->> 0
WHERE job = %(job)s AND fence = %(fence)s AND NOT (need ->> 1)::boolean AND other.task >> 20 <> %(job)s;

-- name: mark_needed
-- Completions in these jobs must look for tasks of other jobs that need theirs.
UPDATE rushes.job SET needed = true WHERE number = ANY (%(numbers)s);

-- name: plant_texts
-- Drafts become tasks with places in plan order: what never changes about them.
INSERT INTO rushes.task_text (task, id, stage, chunk, lane, place, created, spec)
SELECT %(before)s + row_number() OVER (ORDER BY place, id), id, stage, chunk, lane, place, %(at)s, spec
FROM rushes.draft
WHERE job = %(job)s AND fence = %(fence)s
    AND NOT EXISTS (SELECT FROM rushes.task_text WHERE task_text.id = draft.id);

-- name: plant_needs
-- A row for each task that a new task needs.
INSERT INTO rushes.need (ref, task)
SELECT coalesce(other.task, -row_number() OVER (PARTITION BY mine.task)), mine.task
FROM (SELECT DISTINCT draft.id, need ->> 0 AS ref FROM rushes.draft CROSS JOIN json_array_elements(draft.needs) AS need
    WHERE draft.job = %(job)s AND draft.fence = %(fence)s AND NOT (need ->> 1)::boolean) AS said
JOIN rushes.task_text AS mine ON mine.id = said.id AND mine.task BETWEEN %(first)s AND %(last)s
LEFT JOIN rushes.task_text AS other ON other.id = said.ref;

-- name: plant_key_needs
-- A row for each blob key that a new task needs; met at once if it arrived before.
INSERT INTO rushes.need_key (key, task, met)
SELECT need ->> 0, mine.task, EXISTS (SELECT FROM rushes.arrival WHERE arrival.key = need ->> 0)
FROM rushes.draft CROSS JOIN json_array_elements(draft.needs) AS need
JOIN rushes.task_text AS mine ON mine.id = draft.id AND mine.task BETWEEN %(first)s AND %(last)s
WHERE draft.job = %(job)s AND draft.fence = %(fence)s AND NOT draft.adopted AND (need ->> 1)::boolean
ON CONFLICT DO NOTHING;

-- name: plant_done
-- Adopted ones are done.
INSERT INTO rushes.task_done (first, last, finished, progress, fence, failures, losses, adopted)
SELECT mine.task, mine.task, %(at)s, 0, 0, 0, 0, true
FROM rushes.draft
JOIN rushes.task_text AS mine ON mine.id = draft.id AND mine.task BETWEEN %(first)s AND %(last)s
WHERE draft.job = %(job)s AND draft.fence = %(fence)s AND adopted;

-- name: plant_tasks
-- Those without unmet needs are ready, the others wait. Neighbours that need nothing at all and go to one lane are one run.
INSERT INTO rushes.task (key, last, rank, state, parked, open, unmet, lane)
SELECT min(task), max(task), %(rank)s, (CASE WHEN n = 0 THEN 'ready' ELSE 'waiting' END)::rushes.task_state,
    %(stopped)s AND n = 0, NOT %(stopped)s AND n = 0, n, lane
FROM (
    SELECT mine.task, mine.lane, free, n,
        CASE WHEN free THEN mine.task - row_number() OVER (PARTITION BY mine.lane, free ORDER BY mine.task) ELSE mine.task END AS run
    FROM rushes.draft
    JOIN rushes.task_text AS mine ON mine.id = draft.id AND mine.task BETWEEN %(first)s AND %(last)s
    CROSS JOIN LATERAL (SELECT json_array_length(draft.needs) = 0 AS free, (
        (SELECT count(*) FROM rushes.need WHERE need.task = mine.task
            AND coalesce((SELECT last FROM rushes.task_done WHERE first <= need.ref ORDER BY first DESC LIMIT 1) < need.ref, true))
        + (SELECT count(*) FROM rushes.need_key WHERE need_key.task = mine.task AND NOT met))::integer AS n) AS open
    WHERE draft.job = %(job)s AND draft.fence = %(fence)s AND NOT adopted) AS new
GROUP BY lane, free, run, n;

-- name: planted
-- The new tasks in plan order; those without a state are done.
SELECT task, id, nullif(state, 'done') FROM rushes.task_row WHERE task BETWEEN %(first)s AND %(last)s ORDER BY task;

-- name: drafts_done
-- The drafts of a job whose plan is open.
DELETE FROM rushes.draft WHERE job = %(job)s;

-- name: arrival_add
-- A blob key with this content, once.
INSERT INTO rushes.arrival (key, etag, at) VALUES (%(key)s, %(etag)s, %(at)s) ON CONFLICT DO NOTHING RETURNING key;

-- name: awaiting
-- Jobs with tasks that need a blob key.
SELECT DISTINCT task >> 20 FROM rushes.need_key WHERE key = %(key)s AND NOT met;

-- name: meet_key
-- The needs of a blob key are met; the tasks that became ready.
WITH met AS (
    UPDATE rushes.need_key SET met = true WHERE key = %(key)s AND NOT met RETURNING task
), down AS (
    SELECT met.task, 1 AS n, paused > 0 OR cancelled AS stopped
    FROM met JOIN rushes.job ON job.number = met.task >> 20
), counted AS (
    UPDATE rushes.task
    SET unmet = unmet - n, parked = CASE WHEN state = 'waiting' AND unmet = n THEN stopped ELSE parked END,
        open = CASE WHEN state = 'waiting' AND unmet = n THEN NOT stopped ELSE open END,
        state = CASE WHEN state = 'waiting' AND unmet = n THEN 'ready' ELSE state END
    FROM down WHERE key = down.task AND unmet > 0 RETURNING key, state, unmet, parked
)
SELECT key, id, parked FROM counted JOIN rushes.task_text ON task = key WHERE unmet = 0 AND state = 'ready' ORDER BY key;
