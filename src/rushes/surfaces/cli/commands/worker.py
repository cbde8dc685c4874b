"""A worker process that runs the tasks of a home: worker."""

from collections.abc import Sequence

import click

from rushes.domain.errors import Interrupted, RushesError, Terminated
from rushes.library import Library
from rushes.library.work.workers import HomeWorker, OnFetch
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.library_option import Overrides, open_library
from rushes.surfaces.cli.request_options import names
from rushes.surfaces.cli.screen import DONE
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.worker_view import WorkerView, task_summary
from rushes.surfaces.words import plural

SOME_FAILED, STOPPED = 3, (Interrupted.exit_code, Terminated.exit_code)


@command("worker", "rushes worker", "rushes worker --until-idle --slots 2", "rushes worker --lanes cpu,gpu --json")
@click.option("--slots", type=click.IntRange(1), metavar="N", help="Process N chunks at the same time.")
@click.option(
    "--lanes", "--lane", multiple=True, metavar="LANE", help="Take tasks of these lanes: cpu, gpu, or auto for all."
)
@click.option(
    "--drain-grace",
    type=click.IntRange(0),
    metavar="SECONDS",
    help="How long running chunks may take to finish after a stop signal.",
)
@click.option("--until-idle", is_flag=True, help="Stop when no work is left; exit 3 if some tasks failed.")
@click.pass_obj
def worker(session: Session, slots: int | None, lanes: Sequence[str], drain_grace: int | None, until_idle: bool) -> int:
    """Process the jobs that were added, until stopped.

    On SIGTERM or Ctrl-C, running chunks may finish within the grace period and the rest is given back, so that another
    worker continues at once; the second signal stops immediately. Any number of workers may share a home.
    """
    over: Overrides = {
        "--slots": ("slots", slots),
        "--lanes": ("lanes", ",".join(names(lanes)) or None),
        "--drain-grace": ("drain_seconds", drain_grace),
    }
    library = open_library(session, create=True, logs_to_stderr=session.json, over=over)
    worker = HomeWorker(library.home, until_idle=until_idle, on_fetch=_fetch_teller(session))
    view = WorkerView(session, lambda job: library.jobs.get(job).name, lambda: worker.shell.state)
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
    limits, home = worker.shell.state.limits, library.folder
    if session.json:
        fields = {"slots": limits.slots, "lanes": limits.lanes, "drain_seconds": limits.drain_seconds}
        session.message("worker", worker=worker.shell.me.id, home=home, **fields)
        return
    takes = f"{plural(limits.slots, 'slot')}, {'lane' if len(limits.lanes) == 1 else 'lanes'} {', '.join(limits.lanes)}"
    session.remark(f"working for {home}", (f"  {takes}", DONE))


def _end(session: Session, view: WorkerView, code: int) -> None:
    if session.json:
        counted = {"tasks": dict(view.count), "seconds_elapsed": round(view.seconds, 2)}
        session.message("summary", **counted, code=code, resumable=code in STOPPED)
        return
    end = "stopped; unfinished tasks were given back" if code in STOPPED else "no work is left"
    session.remark(task_summary(view), (f"; {end}", DONE))
    if view.count["dead"]:
        session.remark(("next: rushes failed ls", DONE))


COMMANDS = {"worker": worker}
