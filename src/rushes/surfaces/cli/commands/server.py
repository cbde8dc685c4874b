"""Servers: serve (pages, API, gRPC), ml (the inference service), mcp (agents), up (a fleet on this machine)."""

import secrets
import shlex
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import click

from rushes.domain.errors import NotAllowed, Refused
from rushes.files import local_path
from rushes.library import Library, needed
from rushes.library.local_fleet import GRACE_SECONDS, Ended, Fleet, Part
from rushes.library.work.processes import WorkerProcesses
from rushes.settings import load
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.commands.worker import host_port, show_store_wait
from rushes.surfaces.cli.options import number_option, open_library
from rushes.surfaces.cli.screen import DONE, NOW
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.model_download import DownloadView
from rushes.surfaces.words import plural
from rushes.telemetry import log_to

LOOK_SECONDS = 0.5
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last one: the terminal was closed


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
    show_store_wait(session, library)
    code = secrets.token_urlsafe(12) if setup else ""
    app = create(library, host, code, insecure=insecure)
    port = _checked_port(host, port)
    is_open = app.state.access.open
    rpc = _serve_grpc(library, (host, grpc), is_open=is_open, insecure=insecure) if grpc is not None else None
    beside = WorkerProcesses(library.folder, workers, slots)
    server = Server(app, host, port)
    _report_address(session, f"http://{host_port(host, port)}", code, is_open=is_open)
    if rpc:
        _report_grpc(session, library, host_port(host, rpc.port))
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
    server = RpcServer(library, host_port(host, port))
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
    port = _checked_port(host, port)
    service = InferenceService(settings)
    session.remark((f"loading models on {service.device_name}", NOW))
    with closing(DownloadView(session)) as fetched:
        service.start(fetched.look)
    app, url = create(service, settings, host), f"http://{host_port(host, port)}"
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


def _checked_port(host: str, port: int) -> int:
    """The port, or a free one for 0.

    Raises:
        Refused: the port is in use, or may not be used.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((host, port))
        except OSError as e:
            raise Refused(f"cannot listen on {host}:{port}: {e.strerror}", "Choose another port with --port.") from e
        return int(s.getsockname()[1])


@command("mcp", "rushes mcp", "rushes mcp --pages https://films.example.org")
@click.option("--pages", metavar="URL", help="Address of rushes serve for links. Default: http://127.0.0.1:8000.")
def mcp(session: Session, pages: str | None) -> int:
    """Let agents search and read the library over the Model Context Protocol.

    The agent starts this command and talks to it over stdin and stdout; `rushes serve` offers the same tools at /mcp.
    Agents may read, add videos below `sources` (default: this home and your media folders) and request clips; deleting
    needs mcp_scopes = "add,delete". Workers do the processing: rushes worker.
    Requires: pip install 'rushes[mcp]'
    """
    with needed("mcp"):
        from rushes.surfaces.mcp.server import create  # noqa: PLC0415 - the extra may not be installed
        from rushes.surfaces.mcp.tool_call import LOCAL_PAGES  # noqa: PLC0415
    create(open_library(session, create=True), pages or LOCAL_PAGES).run()
    return 0


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
