"""The estimate of a job, kept with it beside what it came to."""

from collections import Counter
from collections.abc import Mapping

from rushes.domain.job import FINAL, Job
from rushes.domain.task import TaskState
from rushes.estimates.film_cost import film_costs, total_seconds
from rushes.estimates.stage_cost import StageCost
from rushes.home import Home
from rushes.jobs.originals import read_probe
from rushes.ledger.pages import all_tasks
from rushes.plan.planner import JobSpec

KIND = "estimate"  # of the records that keep them


def job_estimate(home: Home, job: Job, machine: str) -> tuple[float, float] | None:
    """Seconds (p50, p90) for what was left of a planned job when it was first asked for in a run.

    None until something of each stage was done on this kind of machine; the first chunks of the job itself count.
    """
    record = home.records.get(KIND, job.owner, job.id)
    if record:
        return float(record.doc["p50"]), float(record.doc["p90"])
    if not job.facts:
        return None
    costs = film_costs(home, read_probe(home, job), JobSpec.from_text(job.payload).stages, machine, least=1)
    known = {stage: cost for stage, cost in costs.items() if cost}
    if len(known) < len(costs):
        return None
    p50, p90 = (round(seconds, 3) for seconds in total_seconds(home, _left(home, job, known)))
    home.records.put(KIND, job.owner, job.id, {"p50": p50, "p90": p90})
    return p50, p90


def forget_estimate(home: Home, job: Job) -> None:
    """A job goes on: the next estimate is for what is left now."""
    if job.state not in FINAL:
        home.records.delete(KIND, job.owner, job.id)


def _left(home: Home, job: Job, costs: Mapping[str, StageCost]) -> dict[str, StageCost]:
    tasks = all_tasks(home.ledger, job.id)
    total, done = Counter(t.stage for t in tasks), Counter(t.stage for t in tasks if t.state is TaskState.DONE)
    return {stage: c.part(1 - done[stage] / total[stage] if total[stage] else 1.0) for stage, c in costs.items()}
