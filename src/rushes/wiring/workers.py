"""Building a worker of a home: its limits and its ports."""

import os
from collections.abc import Callable, Sequence
from functools import partial

from rushes.blobs.local_disk import free_bytes
from rushes.domain.errors import SandboxMissing
from rushes.domain.video import BUCKETS
from rushes.domain.worker import NOW, lanes_at
from rushes.home import Home, version
from rushes.jobs.control import Reconciler
from rushes.jobs.open_plan import PlanOpener
from rushes.ledger.port import Ledger
from rushes.settings import REMOTE
from rushes.wiring.engines import worker_engine
from rushes.wiring.incarnation import incarnation
from rushes.wiring.slots import slot_process
from rushes.wiring.stage_services import answer_events
from rushes.wiring.work_ports import WorkPorts
from rushes.worker import core
from rushes.worker.broker.attempt import AttemptDeps
from rushes.worker.publish import sweep_page
from rushes.worker.sandbox import REQUIRE
from rushes.worker.sandbox.report import missing_layers
from rushes.worker.shell import Shell, WorkerDeps
from rushes.worker.task_filter import FilteredTasks, TaskFilter


def worker(
    home: Home,
    *,
    slots: int | None = None,
    lanes: Sequence[str] = (),
    until: Callable[[Shell], bool] = lambda _shell: False,
    filter: TaskFilter | None = None,
    retention: Callable[[], float] | None = None,
) -> Shell:
    """A worker of this home, for all its tasks or those that pass a filter.

    Raises:
        SandboxMissing: its slots cannot be confined as the settings require.
    """
    s = home.settings
    _check_sandbox(s.sandbox)
    count = home.slots if slots is None else slots
    lanes = tuple(lanes) or home.lanes
    ports = _ports_of(home)
    deps = WorkerDeps(
        ledger=ports.ledger,
        transport=home.transport,
        free_bytes=ports.free_bytes,
        sweep=ports.sweep,
        open_plan=ports.open_plan,
        check_plan=ports.check_plan,
        opens_plan=lambda stage: home.specs[stage].opens_plan if stage in home.specs else False,
        lane_of=home.lane_of,
        child=slot_process(home, _threads(home, count), ports.attempt_deps),
        limits=_limits(home, count, lanes, filtered=filter is not None),
        new_incarnation=lambda: incarnation(_announced(lanes, home.site), count, home.owner),
        slot_memory=s.slot_memory_mb * 2**20,
        slot_tasks=s.slot_tasks,
        reserve=s.reserve_mb * 2**20,
        filter=FilteredTasks(home.ledger, filter) if filter else None,
        retention=retention,
        hear_answers=answer_events(home),
    )
    return Shell(deps, until)


def _limits(home: Home, slots: int, lanes: tuple[str, ...], *, filtered: bool) -> core.Limits:
    s, by_hint = home.settings, home.transport.queues and not filtered  # a filtered worker leaves hints to the others
    look_seconds = 1.0 if filtered else home.transport.look_seconds
    return core.Limits(slots, lanes, s.task_seconds, s.drain_seconds, look_seconds, by_hint, home.site)


def _check_sandbox(wanted: str) -> None:
    if wanted == REQUIRE and (missing := missing_layers()):
        raise SandboxMissing(f"layers of the sandbox are missing: {', '.join(missing)}")


def _announced(lanes: Sequence[str], site: str) -> tuple[str, ...]:
    """The lanes that others see: all that the worker takes but lane now, which every worker takes."""
    bound = lanes_at((*lanes, *NOW), site)[len(lanes) + len(NOW) :]
    return (*lanes, *bound)


def _ports_of(home: Home) -> WorkPorts:
    engine_of = partial(worker_engine, home.settings)
    if home.settings.store.startswith(REMOTE):
        from rushes.wiring.remote import remote_ports

        return remote_ports(home, engine_of)
    ledger = _ledger_of(home)
    opening = PlanOpener(ledger, home.blobs, home.specs, home.job_names)
    reconciler = Reconciler(home.ledger, home.transport, home.lane_of)
    deps = AttemptDeps.on(home.blobs, home.original, version(), engine_of)
    return WorkPorts(
        ledger=ledger,
        free_bytes=partial(free_bytes, home.blobs),
        sweep=partial(sweep_page, reconciler, home.blobs, home.job_names),
        open_plan=opening,
        check_plan=opening.check,
        attempt_deps=lambda _lease: deps,
    )


def _ledger_of(home: Home) -> Ledger:
    if not home.settings.store.startswith(BUCKETS):
        return home.ledger
    from rushes.ledger.bucket import BucketLedger

    return home.ledger.for_work() if isinstance(home.ledger, BucketLedger) else home.ledger


def _threads(home: Home, slots: int) -> int:
    return home.settings.threads or max(1, (os.cpu_count() or 1) // max(1, slots))
