"""The library over HTTP, for browsers and programs: `rushes serve`."""

import secrets
import socket

import click

from rushes.domain.errors import Refused
from rushes.library import needed
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.options import number_option, open_library
from rushes.surfaces.cli.screen import DONE, NOW
from rushes.surfaces.cli.session import Session


@command("serve", "rushes serve", "rushes serve --workers 1", "rushes serve --host 0.0.0.0 --setup")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@number_option("--port", "Port to listen on.", 0, 65535, 8000)
@number_option("--workers", "Also start N workers.", 0, default=0)
@number_option("--slots", "Chunks that each worker processes at the same time.", 1)
@click.option("--setup", is_flag=True, help="Print a link for creating the first account from another machine.")
def serve(session: Session, host: str, port: int, workers: int, slots: int | None, setup: bool) -> int:
    """Serve the library to browsers and to programs over HTTP.

    On a loopback address everyone on this machine has full access. Any other address needs a token (RUSHES_TOKEN) or
    an account. The server processes no videos itself: --workers starts workers as well.
    Requires: pip install 'rushes[serve]'
    """
    with needed("serve"):
        from rushes.surfaces.server.app import create  # noqa: PLC0415 - the extra may not be installed
        from rushes.surfaces.server.process import Server, Workers  # noqa: PLC0415
    library = open_library(session, create=True, logs_to_stderr=session.json)
    code = secrets.token_urlsafe(12) if setup else ""
    app = create(library, host, code)
    port = port or _free_port(host)
    _check_port(host, port)
    beside = Workers(library.folder, workers, slots)
    server = Server(app, host, port)
    _report(session, f"http://{_shown(host)}:{port}", code, is_open=app.state.access.open)
    try:
        server.run()
    finally:
        beside.stop()
    return 128 + server.told if server.told else 0


def _report(session: Session, url: str, code: str, *, is_open: bool) -> None:
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
