-- Change numbers that were given: on jobs, and the highest one of jobs that are forgotten.
CREATE VIEW change AS
SELECT max(changed) AS number FROM job
UNION ALL SELECT CAST(value AS INTEGER) FROM home WHERE name = 'changed';
