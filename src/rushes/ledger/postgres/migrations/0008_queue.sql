-- The queue that a job was put into: jobs are listed by it.
ALTER TABLE rushes.job ADD COLUMN queue text NOT NULL DEFAULT '';
CREATE INDEX job_by_queue ON rushes.job (owner, queue, number);
DROP VIEW rushes.job_listed;
CREATE VIEW rushes.job_listed AS
SELECT job.id, owner, team, request_id, name, recipe, payload, facts,
    CASE WHEN job.state = 'created' AND first.state = 'leased' THEN 'chunking_in_progress' ELSE job.state END AS state,
    paused, priority, total, done, dead, live, job.losses, job.failures, last_event, job.created,
    coalesce(job.started, first.started) AS started, job.finished, number, job.state AS kept_state, cancelled_stages, queue
FROM rushes.job
JOIN rushes.job_text ON job_text.job = job.number
LEFT JOIN rushes.task AS first ON first.key = job.number << 20;
