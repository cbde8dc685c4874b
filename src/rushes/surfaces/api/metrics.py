"""Metrics for Prometheus and OTLP collectors: of this server, and of the fleet as the store reports it."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from rushes.domain.errors import RushesError
from rushes.library import Library
from rushes.library.work.fleet_figures import MOST_DEAD, MOST_JOBS, FleetFigures, FleetWatch
from rushes.metrics import FAMILIES, PROCESS, Family, labels, merged, text

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request) -> str:
    """Metrics for Prometheus, never labelled by job or video. Those of a store that does not respond are left out."""
    return text(server_figures(request.app.state))


def server_figures(state: Any) -> list[Family]:
    """All metrics of the application with this state."""
    library: Library = state.library
    name, here = "rushes_streams_active", {labels(protocol="sse"): state.hub.streams + state.hub.watches}
    streams = Family(name, *FAMILIES[name], here)
    told = [*merged([*state.access.metrics.families(), *PROCESS.families(), streams]), _up(library)]
    watch: FleetWatch = state.fleet_watch
    with suppress(RushesError):
        told += _fleet(watch.figures())
    with suppress(RushesError):  # reads results, which may be away alone
        told += _conversions(watch)
    with suppress(RushesError):
        told += _room(library)
    return told


def _gauge(name: str, help: str, value: float) -> Family:
    return Family(name, "gauge", help, {(): value})


def _up(library: Library) -> Family:
    said = {labels(part=part): int(word == "ok") for part, word in library.maintenance.health().items()}
    return Family("rushes_up", "gauge", "whether a part of the system works", said)


def _room(library: Library) -> Iterator[Family]:
    room = library.maintenance.free_bytes()
    if room is not None:
        yield _gauge("rushes_free_bytes", "free space on the disk that holds the results", room)


def _fleet(figures: FleetFigures) -> Iterator[Family]:
    yield from _work(figures)
    workers = [w for w in figures.workers if w.takes_tasks]
    alive = [w for w in workers if w.alive]
    states = {labels(state="alive"): len(alive), labels(state="gone"): len(workers) - len(alive)}
    yield Family("rushes_workers", "gauge", "workers, by whether their lease is valid", states)
    takers = {labels(lane=lane): n for lane, n in figures.takers.items()}
    yield Family("rushes_lane_workers", "gauge", "live workers that take tasks of a lane", takers)
    yield _gauge("rushes_slots", "slots of all live workers", sum(w.incarnation.slots for w in alive))


def _work(figures: FleetFigures) -> Iterator[Family]:
    ready = {labels(lane=c.lane, stage=c.stage): c for c in figures.ready}
    counted, ages = {k: c.ready for k, c in ready.items()}, {k: c.oldest_seconds for k, c in ready.items()}
    yield Family("rushes_tasks_ready", "gauge", "tasks that a worker could take now, up to 100,000", counted)
    age = "seconds since the oldest ready task was planned"
    yield Family("rushes_ready_task_age_seconds", "gauge", age, ages)
    leased = {labels(stage=stage): n for stage, n in sorted(figures.leased.items())}
    yield Family("rushes_tasks_leased", "gauge", "running tasks", leased)
    dead = {labels(kind=kind): n for kind, n in sorted(figures.dead.items())}
    told = f"failed tasks that were not dismissed, up to {MOST_DEAD}"
    yield Family("rushes_dead_letters", "gauge", told, dead)
    jobs = {labels(state=state): n for state, n in figures.jobs.items()}
    yield Family("rushes_jobs", "gauge", f"unfinished and failed jobs, up to {MOST_JOBS} of a state", jobs)
    what = f"tasks of unfinished jobs (of {MOST_JOBS} jobs)"
    yield _gauge("rushes_chunks_done", f"finished {what}", figures.done)
    yield _gauge("rushes_chunks_total", f"all {what}", figures.total)


def _conversions(watch: FleetWatch) -> Iterator[Family]:
    """Metrics of 3D conversions, under the names and dimensions that dashboards and alarms use."""
    told = watch.conversions()
    for name in dict.fromkeys(metric.name for metric in told):
        values = {labels(**m.dimensions): m.average for m in told if m.name == name}
        yield Family(name, "gauge", "of conversions to 3D by the size of the segment in MB, average", values)
