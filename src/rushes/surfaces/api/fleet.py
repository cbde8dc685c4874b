"""The home itself: workers, totals, settings, health."""

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from rushes.domain.worker import Worker
from rushes.library import SettingValue, version
from rushes.library.access.audit import AUDIT, AuditEntry
from rushes.library.maintenance.doctor import HINTS
from rushes.library.search import Summary
from rushes.library.webhook import DELIVERY, Webhook
from rushes.surfaces.http.audit import note_target
from rushes.surfaces.http.deps import ADMIN, LibraryDep
from rushes.surfaces.http.schemas import Cursor, Limit, Page, RecordShape, page, unseal
from rushes.surfaces.words import active_jobs

router = APIRouter(tags=["fleet"])
health = APIRouter(tags=["health"])
webhook = APIRouter(tags=["webhook"])
MOST = 500  # jobs of a state that are counted: a figure for people, whose end nobody reads
GLANCE = 100  # the same where a page only tells that there are many: reading 500 rows is most of its time


@dataclass(frozen=True, slots=True)
class Stats:
    """Totals, and the jobs that are not finished (at most 500 of each state are counted)."""

    library: Summary
    jobs: Mapping[str, int]
    workers: int
    slots: int
    room: int | None


@dataclass(frozen=True, slots=True)
class About:
    """This server."""

    version: str
    owner: str
    open: bool  # everybody on this machine may do everything


@router.get("/about")
def about(request: Request, library: LibraryDep) -> About:
    """Get the version of this server, and whether it requires a login."""
    return About(version(), library.settings.owner, request.app.state.access.open)


@router.get("/workers")
def list_workers(library: LibraryDep) -> list[Worker]:
    """List all workers, each with its tasks of this owner."""
    return library.jobs.seen_workers()


@router.post("/workers/drain", status_code=202, dependencies=[ADMIN])
def drain_worker(request: Request, library: LibraryDep, worker: str = Query(max_length=300)) -> dict[str, str]:
    """Tell a worker to stop claiming and to give its tasks back; only admins, only workers of this owner."""
    note_target(request, worker)
    library.jobs.drain(worker)
    return {"worker": worker, "told": "drain"}


@router.get("/stats")
def get_stats(library: LibraryDep) -> Stats:
    """Get totals for a start page."""
    active = active_jobs(library.jobs.workers())
    return Stats(
        library.summary(), library.jobs.counts(MOST), active.workers, active.slots, library.maintenance.free_bytes()
    )


@router.get("/audit", dependencies=[ADMIN])
def list_audit(request: Request, cursor: Cursor = "", limit: Limit = 100) -> Page[AuditEntry]:
    """List who did what, when and from where, newest first; only for admins."""
    rows, more = request.app.state.access.accounts.audit.page(unseal(request, cursor, AUDIT), limit)
    return page(request, rows, more, AUDIT)


@router.get("/settings")
def list_settings(library: LibraryDep) -> list[SettingValue]:
    """List the settings in effect, without secrets."""
    return library.maintenance.settings()


@health.get("/healthz")
def is_alive() -> dict[str, str]:
    """Check that this process responds."""
    return {"status": "ok"}


@health.get("/readyz")
def is_ready(library: LibraryDep) -> JSONResponse:
    """Check that every part responds; without hints the state is degraded: work continues, more slowly.

    `sandbox` says which layers confine the slots of this machine.
    """
    said = library.maintenance.health()
    away = {part for part, word in said.items() if word != "ok"}
    status = "not ready" if away - {HINTS} else "degraded" if away else "ready"
    doc = {"status": status, "parts": said, "sandbox": library.maintenance.confinement()}
    return JSONResponse(doc, 503 if away - {HINTS} else 200)


@webhook.get("/webhook/deliveries")
def list_deliveries(request: Request, cursor: Cursor = "", limit: Limit = 50) -> Page[RecordShape]:
    """List the webhook calls and their answers."""
    follower: Webhook = request.app.state.webhook
    rows, more = follower.deliveries(unseal(request, cursor, DELIVERY), limit)
    return page(request, [RecordShape.of(r) for r in rows], more, DELIVERY)
