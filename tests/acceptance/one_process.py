"""A worker without slots: every task of a home runs in this process, one after another, under the eyes of a test."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from rushes.domain.task import Finish, Lease
from rushes.engines.local import LocalEngine
from rushes.engines.port import Engine
from rushes.home import Home, version
from rushes.jobs.open_plan import PlanOpener
from rushes.stages.registry import load_stages
from rushes.wiring.workers import incarnation
from rushes.worker.slot import SlotDeps, run_task

Watch = Callable[[Lease], AbstractContextManager[None]]


def work(home: Home, watch: Watch = lambda _lease: nullcontext(), engine: Engine | None = None) -> None:
    """Do all work there is; `watch` stands round each task."""
    me, opening = incarnation(["cpu"], 1, home.owner), PlanOpener(home.ledger, home.blobs, home.specs)
    eyes = engine or LocalEngine(home.models, threads=2)
    deps = SlotDeps(load_stages(), home.blobs, eyes, home.scratch, home.original, version())
    while True:
        home.ledger.renew(me, {}, {})
        leases = home.ledger.claim(me.id, ["cpu"], 1)
        if not leases:
            return
        (lease,) = leases
        with watch(lease):
            results = run_task(deps, {**lease._asdict(), "job": lease.job}, lambda _fraction: None)
        finish = Finish(lease.task, lease.fence, tuple(results), seconds=1.0)
        if home.specs[lease.stage].opens_plan:
            opening(lease, finish)
        home.ledger.complete(me.id, [finish])
