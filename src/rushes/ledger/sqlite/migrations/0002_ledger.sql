-- The schema of a ledger on SQLite (0001 was that of builds before the first release). Instants are seconds of the boot
-- named in home, for leases (until) without those it slept, for back-offs (due) with them; moments that people read
-- (created, started, finished, at) are wall time in milliseconds. Tables and columns are those of PostgreSQL.

CREATE TABLE home (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- A job's number is its age. Counters and state follow its tasks in the same transaction.
CREATE TABLE job (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    state TEXT NOT NULL,                   -- 'created' also while its first task is leased: see job_seen
    priority INTEGER NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,     -- 1: nothing new starts, 2: and what runs is given back
    cancelled INTEGER NOT NULL DEFAULT 0,
    opened INTEGER NOT NULL DEFAULT 0,     -- its plan is open
    total INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0,
    live INTEGER NOT NULL DEFAULT 0,       -- ready or leased
    losses INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    last_event INTEGER NOT NULL DEFAULT 0,
    finished INTEGER,
    changed INTEGER NOT NULL DEFAULT 0,    -- grows over all jobs with every change of last_event
    created INTEGER NOT NULL,
    started INTEGER
);
CREATE INDEX job_by_age ON job (owner, number);
CREATE INDEX job_by_state ON job (owner, state, number);
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
    facts TEXT NOT NULL
);

-- A task's key is its job's number * 2^20 + its place in the plan: keys in order are jobs by age, then plan order,
-- and the tasks of a job lie together. Place 0 is the task that opens the plan.
CREATE TABLE task (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    stage TEXT NOT NULL,
    chunk INTEGER,
    lane TEXT NOT NULL,
    place INTEGER NOT NULL,                -- as the plan says
    rank INTEGER NOT NULL,                 -- minus the job's priority
    state TEXT NOT NULL,                   -- waiting, ready, leased, done, dead
    parked INTEGER NOT NULL,               -- ready, but its job is paused or cancelled
    due REAL,                              -- ready, but not before
    unmet INTEGER NOT NULL,                -- needs that are not met
    fence INTEGER NOT NULL,
    worker INTEGER,                        -- who has leased it
    outcome TEXT,                          -- of the last attempt: done, failed, lost, given_back
    adopted INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    failure TEXT,                          -- why the last attempt failed
    progress REAL NOT NULL,
    created INTEGER NOT NULL,
    started INTEGER,
    finished INTEGER
);
CREATE INDEX task_ready ON task (lane, rank, key) WHERE state = 'ready' AND NOT parked AND due IS NULL;
CREATE INDEX task_due ON task (due) WHERE due IS NOT NULL;
CREATE INDEX task_leased ON task (worker, key) WHERE state = 'leased';

-- What a task is asked to do lies apart: it may be long, and would be written again with every change of the task.
CREATE TABLE task_spec (
    task INTEGER PRIMARY KEY,
    spec TEXT NOT NULL
);

-- A plan being written, as JSON: no claim sees it. The row without an id has the facts.
CREATE TABLE draft (
    job INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (job, fence, id)
) WITHOUT ROWID;

-- A need of a task is met while that task is done: the count on the one that waits follows in the same transaction. A
-- task that nobody knows has a number below zero. A need of a blob key is a row that is met once.
CREATE TABLE need (
    ref INTEGER NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (ref, task)
) WITHOUT ROWID;
CREATE INDEX need_of_task ON need (task);
CREATE TABLE need_key (
    key TEXT NOT NULL,
    task INTEGER NOT NULL,
    met INTEGER NOT NULL,
    PRIMARY KEY (key, task)
) WITHOUT ROWID;
CREATE INDEX need_key_of_task ON need_key (task);
CREATE TABLE arrival (
    key TEXT NOT NULL,
    etag TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (key, etag)
) WITHOUT ROWID;

-- One row per worker incarnation; a row that is over stays a while, so that its worker cannot enter again.
CREATE TABLE worker (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    until REAL NOT NULL,
    over INTEGER NOT NULL,
    draining INTEGER NOT NULL,
    note TEXT NOT NULL,
    started INTEGER NOT NULL,
    seen INTEGER NOT NULL,                 -- its last renewal
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    pid INTEGER NOT NULL,
    pid_start TEXT NOT NULL,
    lanes TEXT NOT NULL,                   -- a JSON list
    slots INTEGER NOT NULL,
    machine TEXT NOT NULL,
    version TEXT NOT NULL
);

CREATE TABLE result (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    output TEXT NOT NULL,
    manifest_sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    count INTEGER NOT NULL,
    schema_version INTEGER NOT NULL,
    publishes INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) WITHOUT ROWID;
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

CREATE TABLE event (
    job INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    type TEXT NOT NULL,
    at INTEGER NOT NULL,
    task TEXT,
    body TEXT NOT NULL,
    PRIMARY KEY (job, seq)
) WITHOUT ROWID;
CREATE TABLE log (
    task TEXT NOT NULL,
    fence INTEGER NOT NULL,
    line INTEGER NOT NULL,
    at INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (task, fence, line)
) WITHOUT ROWID;

-- The moment of a statement: SQLite's clock is given with each one.
CREATE VIEW clock AS SELECT NULL AS now, NULL AS wall;

-- Jobs and tasks as readers see them: a job whose first task is leased has begun, though only its task says so, because
-- a claim writes no job; what is unfinished in a cancelled job is cancelled.
CREATE VIEW job_seen AS
SELECT job.id, owner, team, request_id, name, recipe, payload, facts,
    CASE WHEN job.state = 'created' AND first.state = 'leased' THEN 'chunking_in_progress' ELSE job.state END AS state,
    paused, priority, total, done, dead, live, job.losses, job.failures, last_event, job.created,
    coalesce(job.started, first.started) AS started, job.finished, number, job.state AS kept_state
FROM job
JOIN job_text ON job_text.job = job.number
LEFT JOIN task AS first ON first.key = job.number << 20;

CREATE VIEW task_seen AS
SELECT task.key, task.id, job.id AS job, stage, chunk, lane, place,
    CASE WHEN job.cancelled AND task.state NOT IN ('done', 'dead') THEN 'cancelled' ELSE task.state END AS state,
    fence, task.failures, task.losses, unmet, spec, worker.id AS worker,
    task.state = 'ready' AND parked AND NOT job.cancelled AS parked, due, progress, task.created, task.started,
    task.finished, CASE WHEN task.state <> 'done' THEN failure END AS failure, task.state = 'done' AND adopted AS adopted,
    (SELECT now FROM clock) AS now
FROM task
JOIN job ON job.number = task.key >> 20
JOIN task_spec ON task_spec.task = task.key
LEFT JOIN worker ON worker.number = task.worker AND task.state = 'leased';

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
    (SELECT json_extract(failure, '$.kind') || ': ' || json_extract(failure, '$.message') FROM task
        WHERE key BETWEEN job.number << 20 AND (job.number << 20) + 1048575 AND failure IS NOT NULL
            AND task.state <> 'done'
        ORDER BY task.started DESC LIMIT 1) AS last_error,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(finished, started, created) / 1000.0, 'unixepoch') AS updated_at
FROM job JOIN job_text ON job_text.job = job.number;

CREATE VIEW chunks AS
SELECT t.id AS chunk_id,
    j.id AS file_id,
    t.chunk AS chunk_index,
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
        THEN json_extract(t.failure, '$.kind') || ': ' || json_extract(t.failure, '$.message') END AS last_error,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.started / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.finished / 1000.0, 'unixepoch') AS completed_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(t.finished, t.started, t.created) / 1000.0, 'unixepoch') AS updated_at,
    t.stage AS stage
FROM task t
JOIN job j ON j.number = t.key >> 20
LEFT JOIN worker w ON w.number = t.worker AND t.state = 'leased';

CREATE VIEW leases AS
SELECT t.id || '#' || t.fence AS lease_id,
    'chunk' AS scope,
    t.id AS scope_id,
    w.id AS worker_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.started / 1000.0, 'unixepoch') AS acquired_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', (w.seen + 30000) / 1000.0, 'unixepoch') AS expires_at,
    NULL AS released_at
FROM task t JOIN worker w ON w.number = t.worker
WHERE t.state = 'leased';

CREATE VIEW event_log AS
SELECT j.id || '#' || e.seq AS event_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.at / 1000.0, 'unixepoch') AS ts,
    CASE e.type WHEN 'dead' THEN 'error' WHEN 'failed' THEN 'warning' WHEN 'lost' THEN 'warning' ELSE 'info' END
        AS level,
    CASE WHEN e.task IS NULL THEN 'job' ELSE 'chunk' END AS entity_type,
    coalesce(e.task, j.id) AS entity_id,
    e.type AS message,
    e.body AS data_json
FROM event e JOIN job j ON j.number = e.job;

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
