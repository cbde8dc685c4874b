"""How long jobs still take: learnt costs, corrected by the times of their own tasks."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from statistics import median

from rushes.domain.grouping import grouped
from rushes.domain.job import Job
from rushes.estimates.cost import CostModel, Footage
from rushes.estimates.estimate import model_of
from rushes.estimates.learnt import LearntModels
from rushes.estimates.report import Range
from rushes.home import Home
from rushes.jobs.progress import Measured, TimeLeft
from rushes.plan.planner import JobSpec
from rushes.plan.schedule import PlannedWork, makespan

LEAST_SPREAD = 0.05  # what remains unsure to the end
TRUST = 2.0, 0.25  # how many of a job's own tasks weigh as much as what was learnt before, and as the reference


@dataclass(frozen=True, slots=True)
class _Film:
    model: CostModel
    footage: Footage
    whole: float  # slot seconds of all of it


class LearntTimes:
    """Estimates for jobs that are worked on; what was learnt of a job's stages is read once."""

    def __init__(self, home: Home, machine: str, slots: int = 0, learnt: LearntModels | None = None) -> None:
        self._home, self._machine, self._slots = home, machine, slots or home.slots
        self._films: dict[str, _Film] = {}
        self._model = learnt.of if learnt else cache(self._learnt)

    def left(self, job: Job, work: Mapping[str, tuple[PlannedWork, float]], measured: Measured) -> TimeLeft | None:
        """What is left of a job; of one that was not opened yet, by its size beside those that were."""
        if not job.facts:
            return self._unopened(job)
        film = self._film(job, work, measured)
        corrections = {stage: _correction(film, stage, took) for stage, took in measured.items()}
        seconds = {
            id: share * corrections.get(item.stage, 1.0) * _seconds(film, item) for id, (item, share) in work.items()
        }
        items = [item for item, _ in work.values()]
        share_left = min(1.0, sum(seconds.values()) / film.whole) if film.whole else 1.0
        model = replace(film.model, spread=max(LEAST_SPREAD, film.model.spread * math.sqrt(share_left)))
        whole = makespan(items, seconds, self._slots)
        stages = grouped(items, lambda item: item.stage)
        each = {stage: sum(seconds[item.id] for item in some) / self._slots for stage, some in stages.items()}
        ranges = {stage: model.around(total) for stage, total in each.items()}
        return TimeLeft(model.around(whole), ranges, whole, sum(seconds.values()))

    def together(self, jobs: Collection[TimeLeft | None]) -> Range | None:
        """What is left of all jobs, whose tasks share the slots; None while nothing is known of one."""
        known = [left for left in jobs if left]
        if len(known) < len(jobs) or not self._films:
            return None if jobs else (0.0, 0.0)
        seconds = max([sum(left.slot_seconds for left in known) / self._slots, *(left.seconds for left in known)])
        model = max((film.model for film in self._films.values()), key=lambda model: model.spread)
        return model.around(seconds, len(known))

    def _film(self, job: Job, work: Mapping[str, tuple[PlannedWork, float]], measured: Measured) -> _Film:
        if job.id not in self._films:
            spec, footage = JobSpec.from_text(job.payload), Footage.of_job(job)
            film = _Film(self._model(spec.stages, spec.profile).for_size(footage.pixels), footage, 0.0)
            open_seconds = sum(_seconds(film, item) for item, _ in work.values())
            done = sum(seconds for took in measured.values() for _, seconds in took)
            self._films[job.id] = replace(film, whole=open_seconds + done)
        return self._films[job.id]

    def _learnt(self, stages: tuple[str, ...], profile: str) -> CostModel:
        return model_of(self._home, stages, profile, self._machine)

    def _unopened(self, job: Job) -> TimeLeft | None:
        rates = [film.whole / film.footage.size for film in self._films.values() if film.footage.size and film.whole]
        if not rates:
            return None
        slot_seconds = median(rates) * JobSpec.from_text(job.payload).source.size
        seconds = slot_seconds / self._slots
        return TimeLeft((seconds / 3, seconds * 3), {}, seconds, slot_seconds)


def _seconds(film: _Film, item: PlannedWork) -> float:
    return film.model.seconds(item.stage, item.media_seconds, film.footage)


def _correction(film: _Film, stage: str, measured: Iterable[tuple[float, float]]) -> float:
    """How much longer its finished tasks took than was said; the more there are, the more it counts."""
    tasks = list(measured)
    cost = film.model.stages.get(stage)
    if not tasks or not cost:
        return 1.0
    took, said = sum(t for _, t in tasks), sum(film.model.seconds(stage, media, film.footage) for media, _ in tasks)
    weight = TRUST[0] if cost.measured else TRUST[1]
    before = weight * said / len(tasks)
    return (took + before) / (said + before) if said + before else 1.0
