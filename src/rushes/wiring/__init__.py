"""Settings become a home with its stores, and a home its workers. The only place that names a backend."""

import os
import platform
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rushes.domain.errors import Refused, WrongHome
from rushes.domain.worker import Incarnation, worker_id
from rushes.home import VERSION, Home, Stores, machine
from rushes.jobs.control import Reconciler
from rushes.jobs.open_plan import PlanOpener
from rushes.ledger.clock import boot_id
from rushes.ledger.process import host_id, process_start
from rushes.settings import NO_OPTIONS, Options, Settings, load
from rushes.wiring.setup import needed
from rushes.worker import core
from rushes.worker.shell import Shell, WorkerDeps
from rushes.worker.task_filter import TaskFilter

_POSTGRES, _DYNAMODB = ("postgres://", "postgresql://"), "dynamodb://"


def open_home(home: Path, *, create: bool = True, take_over: bool = False, options: Options = NO_OPTIONS) -> Home:
    """Open a home, making it if it is not there.

    Raises:
        WrongHome: it cannot be opened safely from here.
    """
    if not home.is_dir() and not create:
        raise WrongHome(f"no home at {home}", "Create one with: rushes init")
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise WrongHome(f"cannot create a home at {home}: {e.strerror}", "Choose another folder with --home.") from e
    loaded = load(home).over(options)
    return Home(home, loaded, stores_of(loaded.settings, home, take_over=take_over))


def stores_of(settings: Settings, home: Path, *, take_over: bool = False) -> Stores:
    """The set-up that the settings mean.

    Raises:
        Refused: there is no such store.
    """
    if not settings.store:
        from rushes.wiring.local import LocalSetup

        return LocalSetup(settings, home, take_over=take_over)
    if settings.store.startswith(_POSTGRES):
        with needed("postgres"):
            from rushes.wiring.postgres import PostgresSetup
        return PostgresSetup(settings, home)
    if settings.store.startswith(_DYNAMODB):
        with needed("aws"):
            from rushes.wiring.aws import AwsSetup
        return AwsSetup(settings, home)
    raise Refused(f"there is no store {settings.store!r}", "Known are postgres://... and dynamodb://table.")


def incarnation(lanes: Sequence[str], slots: int) -> Incarnation:
    """A new incarnation of a worker in this process: host + boot + random, never used again."""
    host, boot = platform.node() or "localhost", boot_id()
    return Incarnation(
        id=worker_id(machine(), host, boot, secrets.token_hex(4)),
        host=host_id(),
        boot=boot,
        pid=os.getpid(),
        pid_start=process_start() or "",
        lanes=tuple(lanes),
        slots=slots,
        machine=machine(),
        version=VERSION,
    )


def worker(
    home: Home,
    *,
    slots: int | None = None,
    lanes: Sequence[str] = (),
    until: Callable[[Shell], bool] = lambda _shell: False,
    filter: TaskFilter | None = None,
) -> Shell:
    """A worker of this home, for all its tasks or those that pass a filter."""
    s = home.settings
    by_hint = home.transport.queues and filter is None  # who takes only some tasks leaves hints to the others
    look_seconds = home.transport.look_seconds if filter is None else 1.0
    count = home.slots if slots is None else slots
    lanes = tuple(lanes) or home.lanes
    opening = PlanOpener(home.ledger, home.blobs, home.specs)
    deps = WorkerDeps(
        ledger=home.ledger,
        transport=home.transport,
        blobs=home.blobs,
        sweeper=Reconciler(home.ledger, home.transport, home.lane_of),
        open_plan=opening,
        check_plan=opening.check,
        opens_plan=lambda stage: home.specs[stage].opens_plan if stage in home.specs else False,
        lane_of=home.lane_of,
        slot_argv=[sys.executable, "-m", "rushes.wiring", str(home.folder)],
        slot_env={"RUSHES_THREADS": str(_threads(home, count))},
        limits=core.Limits(count, lanes, s.task_seconds, s.drain_seconds, look_seconds, by_hint),
        new_incarnation=lambda: incarnation(lanes, count),
        scratch=home.scratch,
        slot_memory=s.slot_memory_mb * 2**20,
        slot_tasks=s.slot_tasks,
        reserve=s.reserve_mb * 2**20,
        filter=filter,
    )
    return Shell(deps, until)


def _threads(home: Home, slots: int) -> int:
    return home.settings.threads or max(1, (os.cpu_count() or 1) // max(1, slots))
