"""A worker without slots: every task of a home runs in this process, one after another, under the eyes of a test."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict

from rushes.domain.result import Result
from rushes.domain.task import Finish, Lease
from rushes.engines.local import LocalEngine
from rushes.engines.port import Engine
from rushes.home import Home, version
from rushes.jobs.open_plan import PlanOpener
from rushes.stages.registry import load_stages
from rushes.wiring.incarnation import incarnation
from rushes.worker.broker.attempt import Attempt, AttemptDeps
from rushes.worker.scratch import scratch
from rushes.worker.slot import SlotDeps, TaskFiles, run_stage

Watch = Callable[[Lease], AbstractContextManager[None]]


def work(home: Home, watch: Watch = lambda _lease: nullcontext(), engine: Engine | None = None) -> None:
    """Do all work there is; `watch` stands round each task."""
    me, opening = incarnation(home.every_lane, 1, home.owner), PlanOpener(home.ledger, home.blobs, home.specs)
    eyes = engine or LocalEngine(home.models, threads=2)
    deps = SlotDeps(load_stages(), {"local": lambda: eyes}, home.scratch)
    given = AttemptDeps.on(home.blobs, home.original, version())
    while True:
        home.ledger.renew(me, {}, {})
        leases = home.ledger.claim(me.id, home.every_lane, 1)
        if not leases:
            return
        (lease,) = leases
        with watch(lease):
            results = _results(deps, Attempt(given, lease))
        finish = Finish(lease.task, lease.fence, results, seconds=1.0)
        if home.specs[lease.stage].opens_plan:
            opening(lease, finish)
        home.ledger.complete(me.id, [finish])


def _results(deps: SlotDeps, attempt: Attempt) -> tuple[Result, ...]:
    task = attempt.begin()
    if task["wanted"]:
        with scratch(deps.scratch) as folder:
            files = TaskFiles(attempt, attempt.original, attempt.taken_in)
            made = run_stage(deps, task, files, folder, lambda _fraction: None)
            attempt.commit({output: asdict(draft) for output, draft in made.items()})
    return attempt.results
