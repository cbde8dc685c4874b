"""How often each stage fails and is tried again, and how long it takes, in the newest jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

from rushes.domain.grouping import grouped
from rushes.home import Home
from rushes.ledger.port import StageCount

JOBS = 20  # newest ones that are looked at


@dataclass(frozen=True, slots=True)
class StageRates:
    """One stage: its attempts that ended, how many of them failed and were tried again; seconds of one that worked."""

    stage: str
    attempts: int
    failures: int
    retries: int
    dead: int
    failure_rate: float  # of attempts
    retry_rate: float
    seconds: float | None


def stage_rates(home: Home, jobs: int = JOBS) -> tuple[StageRates, ...]:
    """The rates of every stage of the owner's newest jobs, most failures first; two questions, however many tasks."""
    ids = [job.id for job in home.ledger.jobs(home.owner, limit=jobs).rows]
    counts = home.ledger.counts(ids) if ids else ()
    found = (_rates(stage, some) for stage, some in grouped(counts, lambda count: count.stage).items())
    return tuple(sorted((r for r in found if r.attempts), key=lambda r: (-r.failure_rate, r.stage)))


def _rates(stage: str, lanes: Sequence[StageCount]) -> StageRates:
    done, failures, retries, dead = (
        sum(getattr(lane, name) for lane in lanes) for name in ("done", "failures", "retries", "dead")
    )
    attempts = failures + done
    failure_rate, retry_rate = (round(n / attempts, 4) if attempts else 0.0 for n in (failures, retries))
    seconds = round(sum(lane.seconds for lane in lanes) / done, 3) if done else None
    return StageRates(stage, attempts, failures, retries, dead, failure_rate, retry_rate, seconds)
