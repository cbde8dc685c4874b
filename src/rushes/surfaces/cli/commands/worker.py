"""Being a worker: taking tasks of a home, one process among any number."""

from collections.abc import Sequence

import click

from rushes.domain.errors import Interrupted, RushesError, Terminated
from rushes.library import Library
from rushes.library.home_worker import HomeWorker, OnFetch
from rushes.surfaces.cli.command import verb
from rushes.surfaces.cli.library_option import Over, opened
from rushes.surfaces.cli.request_options import names
from rushes.surfaces.cli.screen import DONE
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import many
from rushes.surfaces.cli.views.worker_view import WorkerView, count_tasks

SOME_FAILED, STOPPED = 3, (Interrupted.exit_code, Terminated.exit_code)


@verb("worker", "rushes worker", "rushes worker --until-idle --slots 2", "rushes worker --lanes cpu,gpu --json")
@click.option("--slots", type=click.IntRange(1), metavar="N", help="Work on this many chunks at the same time.")
@click.option(
    "--lanes", "--lane", multiple=True, metavar="LANE", help="Take work of these kinds: cpu, gpu, or auto for all."
)
@click.option(
    "--drain-grace",
    type=click.IntRange(0),
    metavar="SECONDS",
    help="How long running chunks may take when told to stop.",
)
@click.option(
    "--until-idle", is_flag=True, help="Stop when nothing is left to do; exit 3 if some of it failed for good."
)
@click.pass_obj
def worker(session: Session, slots: int | None, lanes: Sequence[str], drain_grace: int | None, until_idle: bool) -> int:
    """Do the work that was added, until told to stop.

    SIGTERM or Ctrl-C lets running chunks finish within the grace and hands the rest back, so that another worker goes
    on with it at once; twice stops now. Any number of workers may share a home on one machine.
    """
    over: Over = {
        "--slots": ("slots", slots),
        "--lanes": ("lanes", ",".join(names(lanes)) or None),
        "--drain-grace": ("drain_seconds", drain_grace),
    }
    library = opened(session, create=True, logs_to_stderr=session.json, over=over)
    worker = HomeWorker(library.home, lanes=library.home.lanes, until_idle=until_idle, on_fetch=_fetch_teller(session))
    view = WorkerView(session, lambda job: library.home.ledger.job(job).name, lambda: worker.shell.state)
    worker.shell.on_input = view.on_input
    _begin(session, library, worker)
    view.start()
    try:
        code = worker.run(view.on_stop)
    finally:
        view.close()
    code = code or (SOME_FAILED if until_idle and view.count["dead"] else 0)
    _end(session, view, code)
    return code


def _fetch_teller(session: Session) -> OnFetch:
    def on_fetch(models: Sequence[str], error: RushesError | None) -> None:
        if error:
            session.remark(f"tasks that need models wait: {error}", (f"  {error.advice}", DONE))
        else:
            session.remark(f"fetching {', '.join(models)}", ("  tasks that need them wait", DONE))

    return on_fetch


def _begin(session: Session, library: Library, worker: HomeWorker) -> None:
    limits, home = worker.shell.state.limits, library.home.folder
    if session.json:
        fields = {"slots": limits.slots, "lanes": limits.lanes, "drain_seconds": limits.drain_seconds}
        session.message("worker", worker=worker.shell.me.id, home=home, **fields)
        return
    takes = f"{many(limits.slots, 'slot')}, {'lane' if len(limits.lanes) == 1 else 'lanes'} {', '.join(limits.lanes)}"
    session.remark(f"working for {home}", (f"  {takes}", DONE))


def _end(session: Session, view: WorkerView, code: int) -> None:
    if session.json:
        counted = {"tasks": dict(view.count), "seconds_elapsed": round(view.seconds, 2)}
        session.message("summary", **counted, code=code, resumable=code in STOPPED)
        return
    end = "stopped; what it held is given back" if code in STOPPED else "nothing is left to do"
    session.remark(count_tasks(view), (f"; {end}", DONE))
    if view.count["dead"]:
        session.remark(("next: rushes failed ls", DONE))


COMMANDS = {"worker": worker}
