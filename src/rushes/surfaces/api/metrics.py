"""Figures for Prometheus: those of this server, and those of the fleet as the store tells them."""

from collections.abc import Iterator
from contextlib import suppress

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from rushes.domain.errors import RushesError
from rushes.library import Library
from rushes.library.work.fleet_figures import MOST_DEAD, MOST_JOBS, FleetFigures, FleetWatch
from rushes.metrics import PROCESS, family, labelled
from rushes.surfaces.http.deps import LibraryDep

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request, library: LibraryDep) -> str:
    """Figures for Prometheus; no job or video is ever a label. What a store that is away would tell is left out."""
    state = request.app.state
    lines = [*state.access.metrics.lines(), *PROCESS.lines()]
    lines += family("rushes_streams_active", "gauge", "open event streams", {"": state.hub.streams})
    lines += _up_lines(library)
    with suppress(RushesError):
        lines += [*_fleet_lines(state.fleet_watch.figures()), *_conversion_lines(state.fleet_watch)]
        room = library.free_bytes()
        if room is not None:
            lines += family("rushes_free_bytes", "gauge", "room on the disk that holds the results", {"": room})
    return "".join(f"{line}\n" for line in lines)


def _up_lines(library: Library) -> Iterator[str]:
    said = {labelled(part=part): int(word == "ok") for part, word in library.maintenance.health().items()}
    yield from family("rushes_up", "gauge", "whether a part answers as it should", said)


def _fleet_lines(figures: FleetFigures) -> Iterator[str]:
    yield from _work_lines(figures)
    alive = [w for w in figures.workers if w.alive]
    states = {labelled(state="alive"): len(alive), labelled(state="gone"): len(figures.workers) - len(alive)}
    yield from family("rushes_workers", "gauge", "workers, by whether their lease holds", states)
    takers = {labelled(lane=lane): n for lane, n in figures.takers.items()}
    yield from family("rushes_lane_workers", "gauge", "live workers that take tasks of a lane", takers)
    slots = sum(w.incarnation.slots for w in alive)
    yield from family("rushes_slots", "gauge", "slots of all live workers", {"": slots})


def _work_lines(figures: FleetFigures) -> Iterator[str]:
    ready = {labelled(lane=c.lane, stage=c.stage): c for c in figures.ready}
    counted, ages = {k: c.ready for k, c in ready.items()}, {k: c.oldest_seconds for k, c in ready.items()}
    yield from family("rushes_tasks_ready", "gauge", "tasks that a worker could take now, up to 100,000", counted)
    age = "seconds since the oldest ready task was planned"
    yield from family("rushes_ready_task_age_seconds", "gauge", age, ages)
    leased = {labelled(stage=stage): n for stage, n in sorted(figures.leased.items())}
    yield from family("rushes_tasks_leased", "gauge", "tasks at work", leased)
    dead = {labelled(kind=kind): n for kind, n in sorted(figures.dead.items())}
    told = f"tasks that gave up and were not dismissed, up to {MOST_DEAD}"
    yield from family("rushes_dead_letters", "gauge", told, dead)
    jobs = {labelled(state=state): n for state, n in figures.jobs.items()}
    yield from family("rushes_jobs", "gauge", f"jobs that are not over or failed, up to {MOST_JOBS} of a state", jobs)
    what = f"tasks of jobs that are being worked on (of {MOST_JOBS} jobs)"
    yield from family("rushes_chunks_done", "gauge", f"finished {what}", {"": figures.done})
    yield from family("rushes_chunks_total", "gauge", f"all {what}", {"": figures.total})


def _conversion_lines(watch: FleetWatch) -> Iterator[str]:
    """Under the names and dimensions that tables and alarms of conversions know them by."""
    told = watch.conversions()
    for name in dict.fromkeys(metric.name for metric in told):
        values = {labelled(**m.dimensions): m.average for m in told if m.name == name}
        yield from family(name, "gauge", "of conversions to 3D by the size of the segment in MB, average", values)
