"""The command worker: what it works for, what it shows, how it ends."""

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from rushes.domain.errors import Interrupted, Refused, RushesError, StoreAway, Terminated
from rushes.library import Library
from rushes.library.work.workers import HomeWorker, OnFetch, wait_for_store
from rushes.settings import REMOTE
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.options import Overrides, names, number_option, open_library, slots_option
from rushes.surfaces.cli.screen import DONE
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.worker_view import WorkerView, task_summary
from rushes.surfaces.words import plural

SOME_FAILED, STOPPED = 3, (Interrupted.exit_code, Terminated.exit_code)
_GRACE_HELP = "How long running chunks may take to finish after a stop signal."


@command(
    "worker",
    "rushes worker",
    "rushes worker --until-idle --slots 2",
    "rushes worker --lanes cpu,gpu --json",
    "rushes worker s3://bucket/films",
    "RUSHES_WORKER_TOKEN=... rushes worker --server grpcs://rushes.example:50051",
)
@click.argument("bucket", required=False, default="", metavar="[BUCKET]")
@click.option("--server", default="", metavar="ADDRESS", help="Work for this server; needs no other credentials.")
@slots_option
@click.option(
    "--lanes", "--lane", multiple=True, metavar="LANE", help="Take tasks of these lanes: cpu, gpu, or auto for all."
)
@click.option("--drain-grace", type=click.IntRange(0), metavar="SECONDS", help=_GRACE_HELP)
@number_option("--metrics", "Port that serves health and metrics of this worker over HTTP.", 0, 65535)
@click.option(
    "--metrics-host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address for --metrics."
)
@click.option("--until-idle", is_flag=True, help="Stop when no work is left; exit 3 if some tasks failed.")
def worker(
    session: Session,
    bucket: str,
    server: str,
    slots: int | None,
    lanes: Sequence[str],
    drain_grace: int | None,
    metrics: int | None,
    metrics_host: str,
    until_idle: bool,
) -> int:
    """Process the jobs that were added, until stopped.

    BUCKET (s3://bucket/prefix) is a home in a bucket: the worker takes its jobs, and adds every new video below it. Any
    number of machines may share it, and no server is needed.

    With --server, ADDRESS is the address of `rushes serve --grpc PORT` on another machine: grpcs://host:port, or
    grpc:// without TLS; several are comma separated. The worker needs only a worker token (RUSHES_WORKER_TOKEN, created
    there with rushes tokens worker NAME). It can read the files of its own tasks, and no others.

    On SIGTERM or Ctrl-C, running chunks may finish within the grace period and the rest is given back, so that another
    worker continues at once; the second signal stops immediately. Any number of workers may share a home.
    """
    over: Overrides = {
        "--slots": ("slots", slots),
        "--lanes": ("lanes", ",".join(names(lanes)) or None),
        "--drain-grace": ("drain_seconds", drain_grace),
        "--server": ("store", server or None),
    }
    library = _library_of(session, bucket, server, over)
    if bucket:  # a prefix may have thousands of films: the work on the first begins at once
        session.closing.enter_context(library.watching(bucket, first=until_idle))
    worker = HomeWorker(library.home, until_idle=until_idle, on_fetch=_fetch_teller(session))
    _begin(session, server or library.folder, worker)
    if metrics is not None:
        port = session.closing.enter_context(worker.serving_metrics(metrics_host, metrics))
        session.message("metrics", url=f"http://{host_port(metrics_host, port)}/metrics")
    name_of = str if server else lambda job: library.jobs.get(job).name  # a server's jobs are not for it to see
    return _run(session, worker, name_of, until_idle=until_idle)


def _run(session: Session, worker: HomeWorker, name_of: Callable[[str], str], *, until_idle: bool) -> int:
    view = WorkerView(session, name_of, lambda: worker.shell.state)
    worker.show(view.on_input)
    view.start()
    try:
        code = worker.run(view.on_stop)
    finally:
        view.close()
    code = code or (SOME_FAILED if until_idle and view.count["dead"] else 0)
    _end(session, view, code)
    return code


def host_port(host: str, port: int) -> str:
    """As it stands in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _library_of(session: Session, bucket: str, server: str, over: Overrides) -> Library:
    """The home that a worker works for, as soon as its store answers."""
    if bucket and server:
        raise Refused("a worker works for a bucket or for a server", "Leave out BUCKET or --server.")
    if server and not server.startswith(REMOTE):
        raise Refused(f"{server!r} is not the address of a server", "Write it as grpcs://host:port.")
    session.home = bucket or session.home or server
    library = open_library(session, create=True, logs_to_stderr=session.json, over=over)
    show_store_wait(session, library)
    return library


def show_store_wait(session: Session, library: Library) -> None:
    """Raises StoreAway: it did not answer in time."""

    def on_wait(error: StoreAway, seconds: float) -> None:
        session.message("waiting", reason=str(error), seconds=seconds)
        session.remark(f"waiting for the store, at most {seconds:.0f} s", (f"  {error}", DONE))

    wait_for_store(library.home, on_wait)


def _fetch_teller(session: Session) -> OnFetch:
    def on_fetch(models: Sequence[str], error: RushesError | None) -> None:
        if error:
            session.remark(f"tasks that need models wait: {error}", (f"  {error.advice}", DONE))
        else:
            session.remark(f"fetching {', '.join(models)}", ("  tasks that need them wait", DONE))

    return on_fetch


def _begin(session: Session, home: Path | str, worker: HomeWorker) -> None:
    limits = worker.shell.state.limits
    fields = {"slots": limits.slots, "lanes": limits.lanes, "drain_seconds": limits.drain_seconds}
    session.message("worker", worker=worker.shell.me.id, home=home, **fields)
    takes = f"{plural(limits.slots, 'slot')}, {'lane' if len(limits.lanes) == 1 else 'lanes'} {', '.join(limits.lanes)}"
    place = session.home if "://" in str(session.home) else home  # a bucket or a server, not this machine's copies
    session.remark(f"working for {place}", (f"  {takes}", DONE))


def _end(session: Session, view: WorkerView, code: int) -> None:
    counted = {"tasks": dict(view.count), "seconds_elapsed": round(view.seconds, 2)}
    session.message("summary", **counted, code=code, resumable=code in STOPPED)
    end = "stopped; unfinished tasks were given back" if code in STOPPED else "no work is left"
    session.remark(task_summary(view), (f"; {end}", DONE))
    if view.count["dead"]:
        session.remark(("next: rushes failed ls", DONE))
