"""Processes that run until they are stopped: worker, serve, up."""

import secrets
import shlex
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from rushes.domain.errors import Interrupted, NotAllowed, Refused, RushesError, StoreAway, Terminated
from rushes.files import local_path
from rushes.library import Library, needed
from rushes.library.local_fleet import GRACE_SECONDS, Ended, Fleet, Part
from rushes.library.work.processes import WorkerProcesses
from rushes.library.work.workers import HomeWorker, OnFetch, wait_for_store
from rushes.settings import REMOTE, load
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.options import Overrides, names, number_option, open_library, slots_option
from rushes.surfaces.cli.screen import DONE, NOW
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.model_download import DownloadView
from rushes.surfaces.cli.views.worker_view import WorkerView, task_summary
from rushes.surfaces.words import plural
from rushes.telemetry import log_to

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
    worker = HomeWorker(library.home, until_idle=until_idle, on_fetch=_fetch_teller(session))
    name_of = str if server else lambda job: library.jobs.get(job).name  # a server's jobs are not for it to see
    view = WorkerView(session, name_of, lambda: worker.shell.state)
    worker.show(view.on_input)
    _begin(session, server or library.folder, worker)
    if metrics is not None:
        port = session.closing.enter_context(worker.serving_metrics(metrics_host, metrics))
        session.message("metrics", url=f"http://{_shown(metrics_host)}:{port}/metrics")
    view.start()
    try:
        code = worker.run(view.on_stop)
    finally:
        view.close()
    code = code or (SOME_FAILED if until_idle and view.count["dead"] else 0)
    _end(session, view, code)
    return code


def _library_of(session: Session, bucket: str, server: str, over: Overrides) -> Library:
    """The home that a worker works for, as soon as its store answers."""
    if bucket and server:
        raise Refused("a worker works for a bucket or for a server", "Leave out BUCKET or --server.")
    if server and not server.startswith(REMOTE):
        raise Refused(f"{server!r} is not the address of a server", "Write it as grpcs://host:port.")
    session.home = bucket or session.home or server
    library = open_library(session, create=True, logs_to_stderr=session.json, over=over)
    _wait_for_store(session, library)
    if bucket:
        session.closing.enter_context(library.watching(bucket))
    return library


def _wait_for_store(session: Session, library: Library) -> None:
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


@command("serve", "rushes serve", "rushes serve --workers 1", "rushes serve --host 0.0.0.0 --setup --insecure")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@number_option("--port", "Port to listen on.", 0, 65535, 8000)
@number_option("--workers", "Also start N workers.", 0, default=0)
@number_option("--slots", "Chunks that each worker processes at the same time.", 1)
@number_option("--grpc", "Port for jobs in custom queues over gRPC.", 0, 65535)
@click.option("--setup", is_flag=True, help="Print a link with a code for creating the first account.")
@click.option("--insecure", is_flag=True, help="Let other machines use plain HTTP, without a TLS proxy.")
def serve(
    session: Session,
    host: str,
    port: int,
    workers: int,
    slots: int | None,
    grpc: int | None,
    setup: bool,
    insecure: bool,
) -> int:
    """Serve the library to browsers and to programs over HTTP.

    On a loopback address everyone on this machine has full access, until there is an account (rushes users add NAME).
    Any other address needs a token (RUSHES_TOKEN) or an account, and a proxy with TLS whose address is set as `proxy`
    in rushes.toml; --insecure does without. The server processes no videos itself: --workers starts workers as well.
    With --grpc, programs put jobs into custom queues (setting `queues`) and take them: see docs/guides/queues.md.
    Requires: pip install 'rushes[serve]', and 'rushes[grpc]' for --grpc.
    """
    with needed("serve"):
        from rushes.surfaces.server.app import create  # noqa: PLC0415 - the extra may not be installed
        from rushes.surfaces.server.process import Server, signals  # noqa: PLC0415
    library = open_library(session, create=True, logs_to_stderr=session.json)
    _wait_for_store(session, library)
    code = secrets.token_urlsafe(12) if setup else ""
    app = create(library, host, code, insecure=insecure)
    port = port or _free_port(host)
    _check_port(host, port)
    is_open = app.state.access.open
    rpc = _serve_grpc(library, (host, grpc), is_open=is_open, insecure=insecure) if grpc is not None else None
    beside = WorkerProcesses(library.folder, workers, slots)
    server = Server(app, host, port)
    _report_address(session, f"http://{_shown(host)}:{port}", code, is_open=is_open)
    if rpc:
        _report_grpc(session, library, f"{_shown(host)}:{rpc.port}")
    try:
        server.run()
    finally:
        if rpc:
            rpc.stop()
        beside.stop(signals)
    return 128 + server.told if server.told else 0


def _serve_grpc(library: Library, address: tuple[str, int], *, is_open: bool, insecure: bool) -> Any:
    """A gRPC server that runs.

    Raises:
        Refused: others could come in without a token, or read along.
    """
    with needed("grpc"):
        from rushes.surfaces.http.proxy import is_loopback  # noqa: PLC0415 - the extras may not be installed
        from rushes.surfaces.rpc.server import RpcServer  # noqa: PLC0415
    s, (host, port) = library.settings, address
    if not is_open and not s.token:
        raise Refused("gRPC needs a token here", "Set RUSHES_TOKEN; callers send it as authorization: Bearer TOKEN.")
    if not (s.grpc_cert or s.proxy or insecure or is_loopback(host)):
        hint = "Set grpc_cert and grpc_key, put a proxy with TLS in front (proxy), or use --insecure."
        raise NotAllowed(f"{host} is reachable from other machines, and gRPC has no TLS", hint)
    server = RpcServer(library, f"{_shown(host)}:{port}")
    server.start()
    return server


def _report_grpc(session: Session, library: Library, address: str) -> None:
    s = library.settings
    tls = {"tls": bool(s.grpc_cert), "client_certificates": bool(s.grpc_cert and s.grpc_ca)}
    session.message("grpc", address=address, queues=library.queues.names, **tls)
    queues = ", ".join(library.queues.names) or "none, only remote workers"
    session.remark(f"gRPC on {address}", (f"  queues: {queues}", DONE))


@command("ml", "rushes ml", "rushes ml --host 0.0.0.0 --port 8001 --insecure")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@number_option("--port", "Port to listen on.", 0, 65535, 8001)
@click.option("--insecure", is_flag=True, help="Accept other machines without a token.")
def ml(session: Session, host: str, port: int, insecure: bool) -> int:
    """Serve models to workers and to programs over HTTP: the inference service.

    Before it listens, it downloads, verifies, loads and tests every model (or those in RUSHES_ML_MODELS), and exits if
    one fails. It has no home and no database. Workers use it with inference = "http://HOST:8001". An address that other
    machines can reach needs RUSHES_INFERENCE_TOKEN, on the workers too; --insecure skips this check. Programs may ask
    about videos in the folders and buckets of RUSHES_SOURCES; /docs explains how.
    Requires: pip install 'rushes[serve]'
    """
    with needed("serve"):
        from rushes.library.inference import InferenceService  # noqa: PLC0415 - numpy, and the extra below
        from rushes.surfaces.http.proxy import is_loopback  # noqa: PLC0415
        from rushes.surfaces.ml.app import create  # noqa: PLC0415
        from rushes.surfaces.server.process import Server  # noqa: PLC0415
    settings = load().settings
    log_to(level=settings.log_level, process="ml")
    if not (insecure or settings.inference_token or is_loopback(host)):
        raise NotAllowed(
            f"anyone who can reach {host} could use the service", "Set RUSHES_INFERENCE_TOKEN, or use --insecure."
        )
    port = port or _free_port(host)
    _check_port(host, port)
    service = InferenceService(settings)
    session.remark((f"loading models on {service.device_name}", NOW))
    with closing(DownloadView(session)) as fetched:
        service.start(fetched.look)
    app, url = create(service, settings, host), f"http://{_shown(host)}:{port}"
    server, app.state.stereo.url = Server(app, host, port), url
    session.message("serving", url=url, device=service.device_name, models=list(service.loaded()))
    session.line(url)
    ready = f"  {plural(len(service.loaded()), 'model')} ready; try them at {url}/docs; Ctrl-C stops it"
    session.remark((ready, DONE))
    server.run()
    return 128 + server.told if server.told else 0


def _report_address(session: Session, url: str, code: str, *, is_open: bool) -> None:
    setup = f"{url}/setup?code={code}" if code else ""
    session.message("serving", url=url, open=is_open, setup=setup)
    session.line(url)
    if is_open:
        session.remark(("open to everyone on this machine only; Ctrl-C stops it", NOW))
    if setup:
        session.remark(("create the first account here: ", DONE), setup)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
        s.bind((host, 0))
        return int(s.getsockname()[1])


def _check_port(host: str, port: int) -> None:
    """Raises Refused: the port is in use, or may not be used."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((host, port))
        except OSError as e:
            raise Refused(f"cannot listen on {host}:{port}: {e.strerror}", "Choose another port with --port.") from e


LOOK_SECONDS = 0.5
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last one: the terminal was closed


@command("up", "rushes up", "rushes up ~/fleet --workers 4 --slots 1")
@click.argument("folder", default="fleet", type=click.Path(file_okay=False), metavar="[DIR]")
@number_option("--workers", "Number of workers.", 0, default=2)
@number_option("--slots", "Chunks that each worker processes at the same time.", 1, default=1)
def up(session: Session, folder: str, workers: int, slots: int) -> int:
    """Try a fleet on this machine: servers and workers in one command.

    Starts PostgreSQL, Valkey and SeaweedFS (S3) from their packages, on loopback only, and two workers. All data is in
    DIR (default: ./fleet) and is reused the next time, on the same ports. A process that exits unexpectedly is
    restarted. Ctrl-C stops everything.
    Requires: pip install 'rushes[up]'
    """
    fleet, signals = Fleet(local_path(folder).absolute(), workers, slots), list[int]()
    for number in SIGNALS:
        signal.signal(number, lambda number, _frame: _on_signal(fleet, signals, number))
    try:
        _go(session, fleet, signals)
    finally:
        _stop(session, fleet)
    code = 128 + signals[0]
    session.message("summary", folder=fleet.folder, code=code, resumable=True)
    return code


def _on_signal(fleet: Fleet, signals: list[int], number: int) -> None:
    """The first signal stops after what is starting has started; the second does not wait for chunks."""
    signals.append(number)
    if len(signals) > 1:
        fleet.hurry()


def _go(session: Session, fleet: Fleet, signals: Sequence[int]) -> None:
    """Start everything and stay until a signal comes; what ends meanwhile is started again.

    Raises:
        Refused: a part does not start.
    """
    for part in fleet.start():
        _report_part(session, part)
        if signals:
            return
    _report_use(session, fleet)
    while not signals:
        for change in fleet.mend():
            if isinstance(change, Ended):
                _report_ended(session, change)
            else:
                _report_part(session, change)
        time.sleep(LOOK_SECONDS)


def _report_part(session: Session, part: Part) -> None:
    session.message("part", name=part.name, address=part.address, pid=part.pid, log=part.log)
    session.remark(f"{part.name:<11} ", (part.address, DONE))


def _report_ended(session: Session, ended: Ended) -> None:
    name, log = ended.part.name, ended.part.log
    session.message("part_ended", name=name, reason=ended.why, restart_in_seconds=ended.pause, log=log)
    session.remark(f"{name} {ended.why}; it is started again in {ended.pause} s", (f"  its log: {log}", DONE))


def _report_use(session: Session, fleet: Fleet) -> None:
    session.message("up", home=fleet.home, folder=fleet.folder, settings=fleet.shown_settings)
    session.line(f"export RUSHES_HOME={shlex.quote(str(fleet.home))}")
    session.remark(("run that in another terminal, then: rushes run VIDEO.mp4", DONE))
    session.remark((f"addresses and passwords, new with every start: {fleet.home}/rushes.toml", DONE))
    session.remark((f"Ctrl-C stops everything; the data is kept in {fleet.folder}", NOW))


def _stop(session: Session, fleet: Fleet) -> None:
    if not fleet.parts:
        fleet.stop()
        return
    session.remark((f"stopping; running chunks have {GRACE_SECONDS} s to finish, Ctrl-C again stops at once", NOW))
    fleet.stop()
    session.remark((f"stopped; the data is kept in {fleet.folder}", DONE))
