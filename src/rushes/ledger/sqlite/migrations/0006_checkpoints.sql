-- What the words of the checkpoint document need to be true: attempts that are over, shutdowns, and hashes of texts.
ALTER TABLE result ADD COLUMN text_sha256 TEXT NOT NULL DEFAULT '';
ALTER TABLE job ADD COLUMN shutdown_reason TEXT;
ALTER TABLE job ADD COLUMN shutdown_at INTEGER;

-- One row per lease that is over, written with the task in the same transaction.
CREATE TABLE attempt (
    task INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    worker TEXT,
    started INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    expires INTEGER NOT NULL,              -- when the lease would have been over
    outcome TEXT,                          -- done, failed, lost, given_back; NULL: its job was cancelled
    final INTEGER NOT NULL,                -- the task is dead by it
    failure TEXT,
    PRIMARY KEY (task, fence)
) WITHOUT ROWID;

CREATE TRIGGER attempt_over AFTER UPDATE OF state ON task WHEN old.state = 'leased' AND new.state <> 'leased'
BEGIN
    INSERT OR REPLACE INTO attempt (task, fence, worker, started, ended, expires, outcome, final, failure)
    SELECT old.key, old.fence, worker.id, old.started,
        coalesce(new.finished, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), worker.seen + 30000,
        CASE WHEN new.outcome IS NOT old.outcome THEN new.outcome END, new.state = 'dead',
        CASE WHEN new.outcome = 'failed' OR new.state = 'dead' THEN new.failure END
    FROM worker WHERE worker.number = old.worker;
END;
CREATE TRIGGER attempts_forgotten AFTER DELETE ON task
BEGIN
    DELETE FROM attempt WHERE attempt.task = old.key;
END;

-- A worker is asked to stop: the jobs that it works for know when and why.
CREATE TRIGGER shutdown_requested AFTER UPDATE OF note ON worker
WHEN new.note LIKE 'draining%' AND old.note NOT LIKE 'draining%'
BEGIN
    UPDATE job SET shutdown_at = new.seen,
        shutdown_reason = CASE WHEN new.note LIKE 'draining: %' THEN substr(new.note, 11) ELSE 'draining' END
    WHERE number IN (SELECT key >> 20 FROM task WHERE task.worker = new.number AND task.state = 'leased');
END;

DROP VIEW attempts;
DROP VIEW leases;
DROP VIEW event_log;
DROP VIEW chunks;
DROP VIEW files;
DROP VIEW jobs;

-- What jobs and tasks carry, where it is a document: a ledger takes any text.
CREATE VIEW job_document AS
SELECT job, CASE WHEN json_valid(payload) THEN payload ELSE '{}' END AS payload,
    CASE WHEN json_valid(facts) THEN facts ELSE '{}' END AS facts FROM job_text;
CREATE VIEW task_document AS
SELECT task, CASE WHEN json_valid(spec) THEN spec ELSE '{}' END AS spec FROM task_spec;

CREATE VIEW jobs AS
SELECT id AS job_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', created / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce((SELECT max(at, coalesce(shutdown_at, 0)) FROM event
        WHERE event.job = number AND seq = last_event), created) / 1000.0, 'unixepoch') AS updated_at,
    CASE WHEN asked.payload ->> '$.source.path' LIKE 's3://%' THEN 's3' ELSE 'local' END AS source_type,
    job_text.payload AS config_json,
    CASE WHEN state = 'completed' THEN 'done' WHEN state IN ('failed', 'cancelled') THEN 'failed'
        WHEN EXISTS (SELECT 1 FROM worker JOIN task ON task.worker = worker.number AND task.state = 'leased'
            WHERE task.key >> 20 = job.number AND NOT over AND (draining OR note LIKE 'draining%')) THEN 'draining'
        ELSE 'running' END AS status,
    shutdown_reason,
    strftime('%Y-%m-%dT%H:%M:%fZ', shutdown_at / 1000.0, 'unixepoch') AS shutdown_requested_at,
    state, priority, paused, total, done, dead, live, losses, failures, last_event, owner, name, recipe
FROM job JOIN job_text ON job_text.job = job.number JOIN job_document AS asked ON asked.job = job.number;

-- Where the film of a job lies, as a URI: characters that may not stand in one are written as the %XX of their bytes.
CREATE VIEW source AS
SELECT job, CASE WHEN path IS NULL OR path LIKE 's3://%' THEN path ELSE 'file://' || (
    WITH RECURSIVE written (at, uri) AS (
        SELECT 1, ''
        UNION ALL SELECT at + 1, uri || CASE WHEN substr(path, at, 1) GLOB '[A-Za-z0-9/._~-]' THEN substr(path, at, 1)
            ELSE '%' || substr(hex(substr(path, at, 1)), 1, 2)
                || coalesce('%' || nullif(substr(hex(substr(path, at, 1)), 3, 2), ''), '')
                || coalesce('%' || nullif(substr(hex(substr(path, at, 1)), 5, 2), ''), '')
                || coalesce('%' || nullif(substr(hex(substr(path, at, 1)), 7, 2), ''), '') END
        FROM written WHERE at <= length(path)
    ) SELECT uri FROM written ORDER BY at DESC LIMIT 1) END AS uri
FROM (SELECT job, CASE WHEN path LIKE '/%' OR path LIKE 's3://%' THEN path
        ELSE (SELECT value FROM home WHERE name = 'originals') || '/' || path END AS path
    FROM (SELECT job, payload ->> '$.source.path' AS path FROM job_document));

-- Where the text of a task's result is published, once it is; and its hash.
CREATE VIEW text AS
SELECT task.key AS task, result.text_sha256 AS sha256,
    CASE WHEN NOT EXISTS (SELECT 1 FROM debt WHERE (debt.owner, debt.job, debt.key) = (job.owner, job.id, result.key))
        THEN (SELECT value FROM home WHERE name = 'transcripts') || '/' || (facts ->> '$.stem') || '/'
            || CASE stage WHEN 'transcribe' THEN printf('chunks/chunk_%04d.txt', chunk)
                ELSE substr(facts ->> '$.stem',
                    length(rtrim(facts ->> '$.stem', replace(facts ->> '$.stem', '/', ''))) + 1) || '.txt' END END AS uri
FROM task
JOIN job ON job.number = task.key >> 20
JOIN job_document ON job_document.job = job.number AND facts ->> '$.stem' <> ''
JOIN task_document ON task_document.task = task.key
JOIN result ON result.owner = job.owner
    AND result.key = spec ->> CASE stage WHEN 'transcribe' THEN '$.results.lines' ELSE '$.results.transcript' END
WHERE stage IN ('transcribe', 'transcript') AND task.state = 'done' AND result.text_sha256 <> '';

CREATE VIEW files AS
SELECT id AS file_id,
    id AS job_id,
    source.uri AS source_uri,
    coalesce(spec ->> '$.source', payload ->> '$.source') AS source_fingerprint,
    strftime('%Y-%m-%dT%H:%M:%fZ', created / 1000.0, 'unixepoch') AS discovered_at,
    CASE WHEN state = 'completed' THEN 'done' WHEN state IN ('failed', 'cancelled') THEN 'permanent_failed'
        WHEN EXISTS (SELECT 1 FROM task WHERE key BETWEEN number << 20 AND (number << 20) + 1048575
            AND task.state = 'leased') THEN 'running'
        WHEN EXISTS (SELECT 1 FROM task WHERE key BETWEEN number << 20 AND (number << 20) + 1048575
            AND task.state = 'ready' AND outcome = 'failed') THEN 'retryable_failed'
        WHEN state = 'created' THEN 'pending' ELSE 'running' END AS status,
    total AS total_chunks,
    done AS done_chunks,
    text.uri AS final_output_uri,
    text.sha256 AS final_output_sha256,
    CASE WHEN cancelled THEN 'Cancelled: by a person' ELSE
        (SELECT (failure ->> '$.kind') || ': ' || (failure ->> '$.message') FROM task
        WHERE key BETWEEN number << 20 AND (number << 20) + 1048575 AND failure IS NOT NULL AND task.state <> 'done'
        ORDER BY task.started DESC LIMIT 1) END AS last_error,
    (SELECT updated_at FROM jobs WHERE jobs.job_id = job.id) AS updated_at
FROM job
JOIN job_document ON job_document.job = job.number
JOIN source ON source.job = job.number
JOIN task_document ON task_document.task = job.number << 20
LEFT JOIN text ON text.task >> 20 = job.number
    AND text.task = (SELECT key FROM task WHERE task.id = job.id || '.transcript');

-- Work on the whole film is one chunk of it. A lease is running once its worker has told of it after the claim.
CREATE VIEW chunks AS
SELECT task.id AS chunk_id,
    job.id AS file_id,
    coalesce(chunk, 0) AS chunk_index,
    CASE WHEN span IS NULL THEN 0.0 ELSE (span ->> 0) * 1.0 * (span ->> 2) / (span ->> 3) END AS start_seconds,
    CASE WHEN span IS NULL THEN coalesce((facts ->> '$.duration_us') / 1000000.0, 0.0)
        ELSE (span ->> 1) * 1.0 * (span ->> 2) / (span ->> 3) END AS end_seconds,
    spec ->> '$.plan_hash' AS chunk_plan_hash,
    CASE
        WHEN task.state = 'done' AND damage.reason IS NOT NULL THEN 'corrupt'
        WHEN task.state = 'done' THEN 'done'
        WHEN task.state IN ('dead', 'cancelled') OR cancelled THEN 'permanent_failed'
        WHEN task.state = 'leased' AND worker.seen <= task.started AND progress = 0 THEN 'leased'
        WHEN task.state = 'leased' THEN 'running'
        WHEN outcome = 'failed' THEN 'retryable_failed'
        WHEN outcome IN ('lost', 'given_back') THEN 'abandoned'
        ELSE 'pending' END AS status,
    worker.id AS lease_owner,
    strftime('%Y-%m-%dT%H:%M:%fZ', (worker.seen + 30000) / 1000.0, 'unixepoch') AS lease_expires_at,
    fence AS attempt_count,
    text.uri AS transcript_uri,
    text.sha256 AS transcript_sha256,
    CASE WHEN task.state = 'done' THEN damage.reason WHEN task.state = 'cancelled' OR (cancelled AND task.state <> 'dead') THEN 'Cancelled: by a person'
        ELSE (failure ->> '$.kind') || ': ' || (failure ->> '$.message') END AS last_error,
    strftime('%Y-%m-%dT%H:%M:%fZ', task.started / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', task.finished / 1000.0, 'unixepoch') AS completed_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', max(task.created, coalesce(task.started, 0), coalesce(task.finished, 0),
        coalesce((SELECT max(ended) FROM attempt WHERE attempt.task = task.key), 0)) / 1000.0, 'unixepoch') AS updated_at,
    stage
FROM (SELECT task, spec, nullif(spec -> '$.span', 'null') AS span FROM task_document) AS asked
JOIN task ON task.key = asked.task
JOIN job ON job.number = task.key >> 20
JOIN job_document ON job_document.job = job.number
LEFT JOIN worker ON worker.number = task.worker AND task.state = 'leased'
LEFT JOIN text ON text.task = task.key
LEFT JOIN (SELECT owner, key, max(at) AS at, reason FROM aside GROUP BY owner, key) AS damage
    ON damage.owner = job.owner AND damage.at >= task.finished AND damage.reason LIKE 'damaged: %'
    AND damage.key IN (SELECT value FROM json_each(spec, '$.results'));

CREATE VIEW leases AS
SELECT task.id || '#' || attempt.fence AS lease_id,
    'chunk' AS scope,
    task.id AS scope_id,
    attempt.worker AS worker_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', attempt.started / 1000.0, 'unixepoch') AS acquired_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', expires / 1000.0, 'unixepoch') AS expires_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', ended / 1000.0, 'unixepoch') AS released_at
FROM attempt JOIN task ON task.key = attempt.task
UNION ALL
SELECT task.id || '#' || fence, 'chunk', task.id, worker.id,
    strftime('%Y-%m-%dT%H:%M:%fZ', task.started / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', (worker.seen + 30000) / 1000.0, 'unixepoch'), NULL
FROM task JOIN worker ON worker.number = task.worker
WHERE task.state = 'leased';

CREATE VIEW attempts AS
SELECT task.id || '#' || attempt.fence AS attempt_id,
    task.id AS chunk_id,
    job.id AS file_id,
    attempt.worker AS worker_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', attempt.started / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', ended / 1000.0, 'unixepoch') AS ended_at,
    CASE WHEN attempt.outcome = 'done' THEN 'success' WHEN final THEN 'permanent_failed'
        WHEN attempt.outcome = 'failed' THEN 'retryable_failed' ELSE 'abandoned' END AS outcome,
    (attempt.failure ->> '$.kind') || ': ' || (attempt.failure ->> '$.message') AS error_message
FROM attempt
JOIN task ON task.key = attempt.task
JOIN job ON job.number = task.key >> 20
UNION ALL
SELECT lease_id, scope_id, substr(scope_id, 1, instr(scope_id, '.') - 1), worker_id, acquired_at, NULL, NULL, NULL
FROM leases WHERE released_at IS NULL;

CREATE VIEW event_log AS
SELECT job.id || '#' || seq AS event_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS ts,
    CASE type WHEN 'dead' THEN 'error' WHEN 'failed' THEN 'warning' WHEN 'lost' THEN 'warning' ELSE 'info' END AS level,
    CASE WHEN task IS NULL THEN 'job' ELSE 'chunk' END AS entity_type,
    coalesce(task, job.id) AS entity_id,
    type AS message,
    body AS data_json
FROM event JOIN job ON job.number = event.job
UNION ALL
SELECT owner || '#' || key || '#' || at, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch'), 'error', 'result',
    key, reason, NULL
FROM aside;
