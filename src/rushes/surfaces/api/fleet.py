"""What the home stands on: workers, sums, settings, health, and metrics for Prometheus."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from rushes.blobs.documents import read_document
from rushes.blobs.local_disk import free_bytes
from rushes.domain.errors import RushesError
from rushes.domain.job import JobState
from rushes.domain.worker import Worker
from rushes.home import VERSION, Home
from rushes.index.port import Summary, find_video
from rushes.settings import Settings, shown
from rushes.surfaces.http.deps import ADesk, AHouse, ALibrary

router = APIRouter(tags=["fleet"])
health = APIRouter(tags=["health"])
OPEN = (JobState.CREATED, JobState.CHUNKING, JobState.RUNNING, JobState.FAILED)
MOST = 500  # jobs of a state that are counted: a figure for people, whose end nobody reads
GLANCE = 100  # the same where a page only tells that there are many: reading 500 rows is most of its time


@dataclass(frozen=True, slots=True)
class Stats:
    """What there is, and what is to be done (at most 500 of each state are counted)."""

    library: Summary
    jobs: Mapping[str, int]
    workers: int
    slots: int
    room: int | None


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as it may be seen, and where its value came from."""

    name: str
    value: Any
    origin: str
    doc: str


@dataclass(frozen=True, slots=True)
class About:
    """This server."""

    version: str
    owner: str
    open: bool  # everybody on this machine may do everything


@router.get("/about")
def about(request: Request, home: AHouse) -> About:
    """Which version this is, and whether the door is open."""
    return About(VERSION, home.settings.owner, request.app.state.door.open)


@router.get("/workers")
def list_workers(home: AHouse) -> list[Worker]:
    """Every worker, with what it holds."""
    return list(home.ledger.workers())


@router.post("/workers/drain", status_code=202)
def drain_worker(desk: ADesk, worker: str = Query(max_length=300)) -> dict[str, str]:
    """Tell a worker to stop claiming and hand back."""
    desk.drain(worker)
    return {"worker": worker, "told": "drain"}


@router.get("/stats")
def get_stats(library: ALibrary) -> Stats:
    """Sums for a first page."""
    home = library.home
    alive = [w for w in home.ledger.workers() if w.alive]
    slots = sum(w.incarnation.slots for w in alive)
    return Stats(library.summary(), counted(home), len(alive), slots, free_bytes(home.blobs))


@router.get("/settings")
def list_settings(home: AHouse) -> list[Setting]:
    """The settings in force, without secrets."""
    origin = home.loaded.origin
    return [Setting(f.name, shown(home.settings, f.name), origin[f.name], f.metadata["doc"]) for f in fields(Settings)]


@health.get("/healthz")
def is_alive() -> dict[str, str]:
    """This process answers."""
    return {"status": "ok"}


@health.get("/readyz")
def is_ready(home: AHouse) -> JSONResponse:
    """Every backend answers."""
    said = parts_of(home)
    fine = all(word == "ok" for word in said.values())
    return JSONResponse({"status": "ready" if fine else "not ready", "parts": said}, 200 if fine else 503)


def parts_of(home: Home) -> dict[str, str]:
    """Each backend, and "ok" or what it says instead."""
    parts: dict[str, Callable[[], object]] = {
        "ledger": home.ledger.workers,
        "records": lambda: home.records.get("ready", home.settings.owner, "ready"),
        "blobs": lambda: read_document(home.blobs, "results/ready"),
        "index": lambda: find_video(home.index, home.settings.owner, "ready"),
    }
    return {name: _answers(ask) for name, ask in parts.items()}


@health.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request, home: AHouse) -> str:
    """Figures for Prometheus; no job or video is ever a label."""
    return "".join(f"{line}\n" for line in _lines(request, home))


def counted(home: Home, most: int = MOST) -> dict[str, int]:
    """Jobs of each state that is not over."""
    return {s.value: len(home.ledger.jobs(home.settings.owner, s, limit=most).rows) for s in OPEN}


def _answers(ask: Callable[[], object]) -> str:
    try:
        ask()
    except RushesError as e:
        return str(e)
    return "ok"


def _lines(request: Request, home: Home) -> Iterator[str]:
    state = request.app.state
    hub, requests = state.hub.counters, state.door.requests
    answered = {f'method="{m}",status="{s}"': n for (m, s), n in sorted(requests.items()) if m in _METHODS}
    yield from _metric("rushes_http_requests_total", "counter", "requests answered", answered)
    yield from _metric("rushes_streams_active", "gauge", "open event streams", {"": hub.streams})
    yield from _metric("rushes_events_persisted_total", "counter", "events read from the ledger", {"": hub.persisted})
    yield from _metric("rushes_events_publish_total", "counter", "events handed to streams", {"": hub.published})
    yield from _metric("rushes_channels_overflow_total", "counter", "streams closed as too slow", {"": hub.overflows})
    jobs = {f'state="{name}"': n for name, n in counted(home).items()}
    yield from _metric("rushes_jobs", "gauge", f"jobs that are not over, counted up to {MOST}", jobs)
    workers = home.ledger.workers()
    alive = {'state="alive"': sum(w.alive for w in workers), 'state="gone"': sum(not w.alive for w in workers)}
    yield from _metric("rushes_workers", "gauge", "workers", alive)
    yield from _metric("rushes_tasks_leased", "gauge", "tasks at work", {"": sum(len(w.held) for w in workers)})
    room = free_bytes(home.blobs)
    if room is not None:
        yield from _metric("rushes_free_bytes", "gauge", "room for results", {"": room})


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def _metric(name: str, kind: str, help: str, values: Mapping[str, int]) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        yield f"{name}{{{labels}}} {value}" if labels else f"{name} {value}"
