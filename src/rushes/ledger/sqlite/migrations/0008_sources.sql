-- Originals in every cloud, clips and jobs of queues are told as what they are.
DROP VIEW jobs;
DROP VIEW source;
DROP VIEW chunks;

CREATE VIEW jobs AS
SELECT id AS job_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', created / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce((SELECT max(at, coalesce(shutdown_at, 0)) FROM event
        WHERE event.job = number AND seq = last_event), created) / 1000.0, 'unixepoch') AS updated_at,
    CASE WHEN asked.payload ->> '$.source.path' LIKE '__://%' THEN substr(asked.payload ->> '$.source.path', 1, 2)
        ELSE 'local' END AS source_type,
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
-- A job of a queue has no film; its queue stands there.
CREATE VIEW source AS
SELECT job, CASE WHEN path IS NULL OR path NOT LIKE '/%' THEN path ELSE 'file://' || (
    WITH RECURSIVE written (at, uri) AS (
        SELECT 1, ''
        UNION ALL SELECT at + 1, uri || CASE WHEN substr(path, at, 1) GLOB '[A-Za-z0-9/._~-]' THEN substr(path, at, 1)
            ELSE '%' || substr(hex(substr(path, at, 1)), 1, 2)
                || coalesce('%' || nullif(substr(hex(substr(path, at, 1)), 3, 2), ''), '')
                || coalesce('%' || nullif(substr(hex(substr(path, at, 1)), 5, 2), ''), '')
                || coalesce('%' || nullif(substr(hex(substr(path, at, 1)), 7, 2), ''), '') END
        FROM written WHERE at <= length(path)
    ) SELECT uri FROM written ORDER BY at DESC LIMIT 1) END AS uri
FROM (SELECT job, CASE WHEN path LIKE '/%' OR path LIKE '__://%' OR kind = 'queue' THEN path
        ELSE (SELECT value FROM home WHERE name = 'originals') || '/' || path END AS path
    FROM (SELECT job, job_text.recipe AS kind, job_document.payload ->> '$.source.path' AS path
        FROM job_document JOIN job_text USING (job)));

-- Work on the whole film is one chunk of it; speech after the last picture belongs to the last one.
-- A lease is running once its worker has told of it after the claim.
CREATE VIEW chunks AS
SELECT task.id AS chunk_id,
    job.id AS file_id,
    coalesce(chunk, 0) AS chunk_index,
    CASE WHEN span IS NULL THEN coalesce((spec ->> '$.options.start_us') / 1000000.0, 0.0)
        ELSE (span ->> 0) * 1.0 * (span ->> 2) / (span ->> 3) END AS start_seconds,
    CASE WHEN span IS NULL THEN coalesce((spec ->> '$.options.end_us') / 1000000.0,
        (facts ->> '$.duration_us') / 1000000.0, 0.0)
        ELSE max((span ->> 1) * 1.0 * (span ->> 2) / (span ->> 3),
            CASE WHEN stage = 'transcribe' AND chunk + 1 = facts ->> '$.chunks'
                THEN coalesce((facts ->> '$.duration_us') / 1000000.0, 0.0) ELSE 0.0 END) END AS end_seconds,
    coalesce(spec ->> '$.plan_hash', '') AS chunk_plan_hash,
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
