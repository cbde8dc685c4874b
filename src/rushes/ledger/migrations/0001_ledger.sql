-- The first schema of a ledger on SQLite. Instants are seconds of the boot named in meta, for leases (until) without
-- those it slept, for back-offs (due) with them; moments that people read (created, started, finished, at) are wall
-- time in milliseconds.

CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- A job's number is its age. Counters and state follow its tasks in the same transaction.
CREATE TABLE job (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,     -- 1: nothing new starts, 2: and what runs is given back
    cancelled INTEGER NOT NULL DEFAULT 0,
    opened INTEGER NOT NULL DEFAULT 0,     -- its plan is open
    chunking INTEGER NOT NULL DEFAULT 0,   -- its first task is leased
    total INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0,
    live INTEGER NOT NULL DEFAULT 0,
    losses INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    last_event INTEGER NOT NULL DEFAULT 0,
    changed INTEGER NOT NULL DEFAULT 0,    -- grows over all jobs with every change of last_event
    created INTEGER NOT NULL,
    started INTEGER,
    finished INTEGER
);
CREATE INDEX job_by_age ON job (owner, number);
CREATE INDEX job_by_state ON job (owner, state, number) WHERE finished IS NULL;
CREATE INDEX job_by_finish ON job (owner, state, finished, number) WHERE finished IS NOT NULL;
CREATE INDEX job_incomplete ON job (number) WHERE state <> 'completed';
CREATE INDEX job_by_change ON job (changed);

-- The texts of a job lie apart, so that counting does not write them again.
CREATE TABLE job_text (
    job INTEGER PRIMARY KEY REFERENCES job (number),
    team TEXT NOT NULL,
    request_id TEXT NOT NULL,
    name TEXT NOT NULL,
    recipe TEXT NOT NULL,
    payload TEXT NOT NULL,
    facts TEXT NOT NULL DEFAULT '',
    drafted_fence INTEGER NOT NULL DEFAULT 0,
    drafted_facts TEXT NOT NULL DEFAULT ''
);

-- A task's key is its job's number * 2^20 + its place in the plan: keys in order are jobs by age, then plan order,
-- and the tasks of a job lie together. Place 0 is the task that opens the plan. What a lease sets has its room from the
-- start (started counts from the first fence on, finished in done and dead): rows that grow would split every page. And
-- a row is of one length when it is ready for the first time, leased and done, so that it is overwritten where it lies:
-- a sixth less for claim and finish. That is why outcomes are short and a task that is done keeps its worker.
CREATE TABLE task (
    key INTEGER PRIMARY KEY,
    lane TEXT NOT NULL,
    rank INTEGER NOT NULL,                 -- minus the job's priority
    state TEXT NOT NULL,                   -- waiting, ready, leased, done, dead
    parked INTEGER NOT NULL DEFAULT 0,     -- ready, but its job is paused or cancelled
    due REAL,                              -- ready, but not before
    unmet INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    worker INTEGER,                        -- of the last lease
    outcome TEXT,                          -- of the last attempt: ok, adopted, failed, lost, given_back; at first: no
    failures INTEGER NOT NULL DEFAULT 0,
    losses INTEGER NOT NULL DEFAULT 0,
    progress REAL NOT NULL DEFAULT 0,
    started INTEGER NOT NULL,
    finished INTEGER NOT NULL
);
CREATE INDEX task_to_claim ON task (lane, rank) WHERE state = 'ready' AND parked = 0 AND due IS NULL;
CREATE INDEX task_due ON task (due) WHERE due IS NOT NULL;

-- What never changes about a task lies apart, so that a lease does not write it again: a third less to write.
CREATE TABLE task_text (
    task INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    stage TEXT NOT NULL,
    chunk INTEGER,
    place INTEGER NOT NULL,
    created INTEGER NOT NULL,
    spec TEXT NOT NULL
);

-- A plan being written: no claim sees it.
CREATE TABLE draft (
    job INTEGER NOT NULL REFERENCES job (number),
    fence INTEGER NOT NULL,
    id TEXT NOT NULL,
    stage TEXT NOT NULL,
    chunk INTEGER,
    lane TEXT NOT NULL,
    place INTEGER NOT NULL,
    adopted INTEGER NOT NULL,
    needs TEXT NOT NULL,                   -- [[ref, is_key], ...]
    spec TEXT NOT NULL,
    PRIMARY KEY (job, fence, id)
) WITHOUT ROWID;

-- A need of a task is met while that task is done: the count on the one that waits follows in the same transaction,
-- and no row need be written. Only what is done again leaves its mark: who had begun keeps what was met.
CREATE TABLE need (
    ref INTEGER NOT NULL,
    task INTEGER NOT NULL,
    kept INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (ref, task)
) WITHOUT ROWID;

-- A need of a blob key is a row that is met once.
CREATE TABLE need_key (
    key TEXT NOT NULL,
    task INTEGER NOT NULL,
    met INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (key, task)
) WITHOUT ROWID;
CREATE TABLE arrival (
    key TEXT NOT NULL,
    etag TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (key, etag)
) WITHOUT ROWID;

CREATE TABLE failure (
    task INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    body TEXT NOT NULL
);

-- One row per worker incarnation; a row that is over stays a while, so that its worker cannot enter again.
CREATE TABLE worker (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    until REAL NOT NULL,
    over INTEGER NOT NULL DEFAULT 0,
    draining INTEGER NOT NULL DEFAULT 0,
    note TEXT NOT NULL DEFAULT '',
    started INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    pid INTEGER NOT NULL,
    pid_start TEXT NOT NULL,
    lanes TEXT NOT NULL,
    slots INTEGER NOT NULL,
    machine TEXT NOT NULL,
    version TEXT NOT NULL
);

-- Where the leases of a worker lie: every task that it holds is in one of its ranges of keys, not every key of a range
-- is held. An index of leased tasks would be written twice a task.
CREATE TABLE hold (
    worker INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (worker, first, last)
) WITHOUT ROWID;

-- Results lie by subject (an owner's, the first letters of their key) in the order in which subjects were met, so that
-- one completion writes neighbours: an index of keys had four times the pages to write. Within a subject they lie by a
-- mark, made of the rest of the key; a mark is eight numbers, for keys that share it.
CREATE TABLE subject (
    number INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    UNIQUE (owner, id)
);
CREATE TABLE result (
    number INTEGER NOT NULL UNIQUE,
    rest TEXT NOT NULL,                    -- of its key, without the subject
    output TEXT NOT NULL,
    manifest_sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    count INTEGER NOT NULL,
    schema_version INTEGER NOT NULL,
    publishes INTEGER NOT NULL
);
CREATE TABLE aside (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (owner, key, at)
) WITHOUT ROWID;
CREATE TABLE debt (
    owner TEXT NOT NULL,
    job TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (owner, job, key)
) WITHOUT ROWID;

-- A row is the numbers seq .. seq + n - 1 of one type. Those of `done` and `adopted` hold many: the body has ranges of
-- tasks, [place, how many, fence], and a list of seconds with one entry per number.
CREATE TABLE event (
    job INTEGER NOT NULL REFERENCES job (number),
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    type TEXT NOT NULL,
    at INTEGER NOT NULL,
    task TEXT,
    body TEXT NOT NULL,
    PRIMARY KEY (job, seq)
) WITHOUT ROWID;
CREATE TABLE log (
    task INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    line INTEGER NOT NULL,
    at INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (task, fence, line)
) WITHOUT ROWID;

-- Jobs and tasks as readers see them: what is unfinished in a cancelled job is cancelled.
CREATE VIEW job_seen AS
SELECT id, owner, team, request_id, name, recipe, payload, facts, state, paused, priority, total, done, dead, live,
    losses, failures, last_event, created, started, finished, number
FROM job JOIN job_text ON job_text.job = job.number;

CREATE VIEW task_seen AS
SELECT task.key, task_text.id, job.id AS job, stage, chunk, lane, place,
    CASE WHEN job.cancelled AND task.state NOT IN ('done', 'dead') THEN 'cancelled' ELSE task.state END AS state,
    fence, task.failures, task.losses, unmet, spec, worker.id AS worker,
    task.state = 'ready' AND parked AND NOT job.cancelled AS parked, due, progress,
    task_text.created, CASE WHEN fence THEN task.started END AS started,
    CASE WHEN task.state IN ('done', 'dead') THEN task.finished END AS finished, failure.body AS failure,
    task.state = 'done' AND task.outcome = 'adopted' AS adopted
FROM task
CROSS JOIN job ON job.number = task.key >> 20
CROSS JOIN task_text ON task_text.task = task.key
LEFT JOIN worker ON worker.number = task.worker AND task.state = 'leased'
LEFT JOIN failure ON failure.task = task.key AND task.state <> 'done';

-- The words of the checkpoint document, for people with a SQLite shell.
CREATE VIEW jobs AS
SELECT id AS job_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', created / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(finished, started, created) / 1000.0, 'unixepoch') AS updated_at,
    'local' AS source_type,
    payload AS config_json,
    CASE state WHEN 'completed' THEN 'done' WHEN 'failed' THEN 'failed' WHEN 'cancelled' THEN 'cancelled'
        ELSE 'running' END AS status,
    NULL AS shutdown_reason,
    NULL AS shutdown_requested_at,
    state, priority, paused, total, done, dead, live, losses, failures, last_event, owner, name, recipe
FROM job JOIN job_text ON job_text.job = job.number;

CREATE VIEW files AS
SELECT id AS file_id,
    id AS job_id,
    name AS source_uri,
    request_id AS source_fingerprint,
    strftime('%Y-%m-%dT%H:%M:%fZ', created / 1000.0, 'unixepoch') AS discovered_at,
    CASE state WHEN 'completed' THEN 'done' WHEN 'failed' THEN 'permanent_failed' WHEN 'cancelled' THEN 'cancelled'
        WHEN 'created' THEN 'pending' ELSE 'running' END AS status,
    total AS total_chunks,
    done AS done_chunks,
    NULL AS final_output_uri,
    NULL AS final_output_sha256,
    (SELECT json_extract(f.body, '$.kind') || ': ' || json_extract(f.body, '$.message')
        FROM failure f JOIN task t ON t.key = f.task
        WHERE f.task BETWEEN job.number << 20 AND (job.number << 20) + 1048575 AND t.state <> 'done'
        ORDER BY f.at DESC LIMIT 1) AS last_error,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(finished, started, created) / 1000.0, 'unixepoch') AS updated_at
FROM job JOIN job_text ON job_text.job = job.number;

CREATE VIEW chunks AS
SELECT x.id AS chunk_id,
    j.id AS file_id,
    x.chunk AS chunk_index,
    NULL AS start_seconds,
    NULL AS end_seconds,
    NULL AS chunk_plan_hash,
    CASE
        WHEN t.state = 'done' THEN 'done'
        WHEN t.state = 'dead' THEN 'permanent_failed'
        WHEN j.cancelled THEN 'cancelled'
        WHEN t.state = 'leased' THEN 'running'
        WHEN t.outcome = 'failed' THEN 'retryable_failed'
        WHEN t.outcome IN ('lost', 'given_back') THEN 'abandoned'
        ELSE 'pending' END AS status,
    w.id AS lease_owner,
    strftime('%Y-%m-%dT%H:%M:%fZ', (w.seen + 30000) / 1000.0, 'unixepoch') AS lease_expires_at,
    t.fence AS attempt_count,
    NULL AS transcript_uri,
    NULL AS transcript_sha256,
    CASE WHEN t.state <> 'done'
        THEN json_extract(f.body, '$.kind') || ': ' || json_extract(f.body, '$.message') END AS last_error,
    CASE WHEN t.fence THEN strftime('%Y-%m-%dT%H:%M:%fZ', t.started / 1000.0, 'unixepoch') END AS started_at,
    CASE WHEN t.state IN ('done', 'dead')
        THEN strftime('%Y-%m-%dT%H:%M:%fZ', t.finished / 1000.0, 'unixepoch') END AS completed_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', max(t.finished, t.started) / 1000.0, 'unixepoch') AS updated_at,
    x.stage AS stage
FROM task t
JOIN task_text x ON x.task = t.key
JOIN job j ON j.number = t.key >> 20
LEFT JOIN worker w ON w.number = t.worker AND t.state = 'leased'
LEFT JOIN failure f ON f.task = t.key;

CREATE VIEW leases AS
SELECT x.id || '#' || t.fence AS lease_id,
    'chunk' AS scope,
    x.id AS scope_id,
    w.id AS worker_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.started / 1000.0, 'unixepoch') AS acquired_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', (w.seen + 30000) / 1000.0, 'unixepoch') AS expires_at,
    NULL AS released_at
FROM task t JOIN task_text x ON x.task = t.key JOIN worker w ON w.number = t.worker
WHERE t.state = 'leased';

-- Every event by itself.
CREATE VIEW event_each AS
SELECT job, seq, type, at, task, body FROM event WHERE type NOT IN ('done', 'adopted')
UNION ALL
SELECT job, seq + place, type, at, id,
    json_object('fence', fence, 'worker', body ->> '$.worker', 'seconds', body ->> ('$.seconds[' || place || ']'))
FROM (
    SELECT event.*, task_text.id, run.value ->> 2 AS fence,
        row_number() OVER (PARTITION BY event.job, event.seq ORDER BY run.key, task_text.task) - 1 AS place
    FROM event JOIN json_each(event.body, '$.runs') AS run
    JOIN task_text ON task_text.task >= (event.job << 20) + (run.value ->> 0)
        AND task_text.task < (event.job << 20) + (run.value ->> 0) + (run.value ->> 1)
    WHERE event.type IN ('done', 'adopted')
);

CREATE VIEW event_log AS
SELECT j.id || '#' || e.seq AS event_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.at / 1000.0, 'unixepoch') AS ts,
    CASE e.type WHEN 'dead' THEN 'error' WHEN 'failed' THEN 'warning' WHEN 'lost' THEN 'warning' ELSE 'info' END
        AS level,
    CASE WHEN e.task IS NULL THEN 'job' ELSE 'chunk' END AS entity_type,
    coalesce(e.task, j.id) AS entity_id,
    e.type AS message,
    e.body AS data_json
FROM event_each e JOIN job j ON j.number = e.job;

CREATE VIEW attempts AS
SELECT entity_id || '#' || json_extract(data_json, '$.fence') AS attempt_id,
    entity_id AS chunk_id,
    substr(event_id, 1, instr(event_id, '#') - 1) AS file_id,
    json_extract(data_json, '$.worker') AS worker_id,
    NULL AS started_at,
    ts AS ended_at,
    CASE message WHEN 'done' THEN 'success' WHEN 'failed' THEN
        CASE WHEN json_extract(data_json, '$.delay') IS NULL THEN 'permanent_failed' ELSE 'retryable_failed' END
        ELSE 'abandoned' END AS outcome,
    CASE message WHEN 'failed' THEN json_extract(data_json, '$.kind') || ': ' || json_extract(data_json, '$.message')
        END AS error_message
FROM event_log
WHERE message IN ('done', 'failed', 'lost', 'given_back')
UNION ALL
SELECT lease_id, scope_id, substr(scope_id, 1, instr(scope_id, '.') - 1), worker_id, acquired_at, NULL, NULL, NULL
FROM leases;
