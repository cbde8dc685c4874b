-- Stages of a job that were cancelled by themselves, with spaces between; and jobs as readers see them, with these.
ALTER TABLE job ADD COLUMN cancelled_stages TEXT NOT NULL DEFAULT '';
CREATE VIEW job_listed AS
SELECT job.id, owner, team, request_id, name, recipe, payload, facts,
    CASE WHEN job.state = 'created' AND first.state = 'leased' THEN 'chunking_in_progress' ELSE job.state END AS state,
    paused, priority, total, done, dead, live, job.losses, job.failures, last_event, job.created,
    coalesce(job.started, first.started) AS started, job.finished, number, job.state AS kept_state, cancelled_stages
FROM job
JOIN job_text ON job_text.job = job.number
LEFT JOIN task AS first ON first.key = job.number << 20;
