-- The queue that a job was put into: jobs are listed by it.
ALTER TABLE job ADD COLUMN queue TEXT NOT NULL DEFAULT '';
CREATE INDEX job_by_queue ON job (owner, queue, number);
DROP VIEW job_listed;
CREATE VIEW job_listed AS
SELECT job.id, owner, team, request_id, name, recipe, payload, facts,
    CASE WHEN job.state = 'created' AND first.state = 'leased' THEN 'chunking_in_progress' ELSE job.state END AS state,
    paused, priority, total, done, dead, live, job.losses, job.failures, last_event, job.created,
    coalesce(job.started, first.started) AS started, job.finished, number, job.state AS kept_state, cancelled_stages, queue
FROM job
JOIN job_text ON job_text.job = job.number
LEFT JOIN task AS first ON first.key = job.number << 20;
