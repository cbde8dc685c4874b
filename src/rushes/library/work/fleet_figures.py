"""Figures of the whole fleet, for alarms and for scaling: a constant number of questions, however large the library."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from rushes.domain.job import JobState
from rushes.domain.keys import parse_task_id
from rushes.domain.worker import NOW, Worker, lanes_of
from rushes.estimates.conversion_report import conversion_metrics
from rushes.estimates.conversions import ConversionMetric
from rushes.home import Home, machine
from rushes.jobs.dead_letters import DeadLetters
from rushes.ledger.port import StageCount

MOST_JOBS = 500  # of a state that are counted: a figure for people and alarms, whose end nobody reads
MOST_DEAD = 500  # dead letters that are counted by class
OPEN = (JobState.CREATED, JobState.CHUNKING, JobState.RUNNING, JobState.FAILED)
CONVERSION_SECONDS = 300.0  # between looks at what conversions took: they are read from results


@dataclass(frozen=True, slots=True)
class FleetFigures:
    """What there is to do, who does it, and what gave up."""

    ready: tuple[StageCount, ...]
    workers: tuple[Worker, ...]
    dead: Mapping[str, int]  # by class of failure, without what was dismissed
    jobs: Mapping[str, int]  # by state
    done: int  # tasks of the jobs that are being worked on
    total: int

    @property
    def leased(self) -> Mapping[str, int]:
        """Tasks at work, by stage."""
        return Counter(parse_task_id(task)[1] for worker in self.workers for task in worker.held)

    @property
    def takers(self) -> Mapping[str, int]:
        """Live workers that take tasks of each lane, of those lanes where a worker or a ready task is."""
        alive = [w for w in self.workers if w.alive and not w.draining]
        lanes = {count.lane for count in self.ready} | {lane for w in alive for lane in w.incarnation.lanes}
        return {lane: sum(lane in (*lanes_of(w, alive), *NOW) for w in alive) for lane in sorted(lanes)}


@dataclass(slots=True)
class FleetWatch:
    """Asks for the figures of a home."""

    home: Home
    _conversions: tuple[ConversionMetric, ...] = ()
    _conversions_at: float = field(default=float("-inf"))

    def figures(self) -> FleetFigures:
        """As they are now. Raises RushesError: the store is away."""
        ledger, owner = self.home.ledger, self.home.owner
        rows = {state: ledger.jobs(owner, state, limit=MOST_JOBS).rows for state in OPEN}
        running = [job.counts for job in rows[JobState.RUNNING]]
        dead = {group.kind: len(group.tasks) for group in DeadLetters(self.home).page(limit=MOST_DEAD).groups}
        return FleetFigures(
            ledger.counts(),
            ledger.workers(),
            dead,
            {state.value: len(some) for state, some in rows.items()},
            sum(counts.done for counts in running),
            sum(counts.total for counts in running),
        )

    def conversions(self) -> tuple[ConversionMetric, ...]:
        """What 3D took, by the size of segments, as it was at most five minutes ago."""
        if time.monotonic() - self._conversions_at > CONVERSION_SECONDS:
            self._conversions, self._conversions_at = conversion_metrics(self.home, machine()), time.monotonic()
        return self._conversions
