"""Workers, and stopping one; settings with their origin; health; the audit log."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response

from rushes.domain.task import LEASE_SECONDS, RENEW_SECONDS, Task
from rushes.domain.worker import Worker
from rushes.library import Library, version
from rushes.library.access.audit import AUDIT
from rushes.surfaces.api.fleet import GLANCE
from rushes.surfaces.http.audit import note_target
from rushes.surfaces.http.deps import ADMIN, LibraryDep, caller_of
from rushes.surfaces.http.schemas import Cursor, seal, unseal
from rushes.surfaces.web.view import back, render
from rushes.surfaces.words import active_jobs, host_of, worker_word

router = APIRouter(include_in_schema=False)
SHOWN = 200  # workers; the dead ones last
HELD = 100  # tasks that are looked up
ENTRIES = 100  # of the audit log on a page


@dataclass(frozen=True, slots=True)
class Row:
    """A worker with what it holds."""

    worker: Worker
    host: str
    word: str
    held: tuple[tuple[Task, str], ...]  # with the name of its job

    @property
    def age(self) -> float:
        """Seconds since it was last heard of."""
        return max(0.0, LEASE_SECONDS - self.worker.lease_left)


@router.get("/workers")
def show_workers(request: Request, library: LibraryDep) -> Response:
    """The table."""
    ours = (worker for worker in library.jobs.workers() if worker.takes_tasks)
    found = sorted(ours, key=lambda w: (not w.alive, w.incarnation.host, w.started_at))
    active = active_jobs(found)
    return render(
        request,
        "workers.html",
        rows=_rows(library, found[:SHOWN]),
        left_out=max(0, len(found) - SHOWN),
        alive=active.workers,
        slots=active.slots,
        busy=active.busy,
        lease=LEASE_SECONDS,
        renew=RENEW_SECONDS,
        counts=library.jobs.counts(GLANCE),
        workers=active.workers,
        may_drain=_may_drain(request, library),
    )


@router.post("/workers", dependencies=[ADMIN])
def drain(request: Request, library: LibraryDep, worker: Annotated[str, Form(max_length=300)]) -> Response:
    """Tell one to stop claiming and hand back."""
    note_target(request, worker)
    library.jobs.drain(worker)
    return back(request, "The worker finishes its tasks, takes no new ones, and stops.")


def _may_drain(request: Request, library: Library) -> Callable[[Worker], bool]:
    admin, settings = caller_of(request).admin, library.settings
    return lambda worker: admin and (settings.fleet_admin or worker.incarnation.owner == settings.owner)


def _rows(library: Library, workers: list[Worker]) -> list[Row]:
    ids = [task for w in workers if w.alive for task in w.held][:HELD]
    tasks = library.jobs.get_tasks(ids)
    jobs = library.jobs.get_many({task.job for task in tasks.values()})
    names = {job.id: job.name for job in jobs.values()}
    return [Row(w, host_of(w), worker_word(w), _held(w, tasks, names)) for w in workers]


def _held(worker: Worker, tasks: dict[str, Task], names: dict[str, str]) -> tuple[tuple[Task, str], ...]:
    """What is somebody else's is only counted."""
    mine = [tasks[id] for id in worker.held if id in tasks and tasks[id].job in names]
    return tuple((task, names[task.job]) for task in mine)


@router.get("/settings")
def show_settings(request: Request, library: LibraryDep, check: Annotated[bool, Query()] = False) -> Response:
    """The page; `check` lets the doctor look at everything, which takes a moment."""
    checks = library.maintenance.doctor() if check else ()
    return render(
        request,
        "settings.html",
        checks=checks,
        settings=sorted(library.maintenance.settings(), key=lambda s: s.origin == "default"),
        parts_ready=library.maintenance.health(),
        models=library.models.ls(),
        home=library.folder,
        version=version(),
        open=request.app.state.access.open,
        caller=caller_of(request),
        audit_days=library.settings.audit_days,
        token=bool(library.settings.token),
        well=all(one.ok for one in checks),
    )


@router.get("/audit", dependencies=[ADMIN])
def show_audit(request: Request, library: LibraryDep, cursor: Cursor = "") -> Response:
    """Who did what, newest first."""
    rows, more = request.app.state.access.accounts.audit.page(unseal(request, cursor, AUDIT), ENTRIES)
    days = library.settings.audit_days
    return render(request, "audit.html", rows=rows, cursor=seal(request, more, AUDIT), days=days)
