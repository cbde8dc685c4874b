"""The command that agents start to use the library: MCP over stdin and stdout."""

import click

from rushes.library import needed
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.options import open_library
from rushes.surfaces.cli.session import Session


@command("mcp", "rushes mcp", "rushes mcp --pages https://films.example.org")
@click.option("--pages", metavar="URL", help="Address of rushes serve for links. Default: http://127.0.0.1:8000.")
def mcp(session: Session, pages: str | None) -> int:
    """Let agents search and look at the library, by the Model Context Protocol.

    An agent's program starts this and speaks with it over stdin and stdout; `rushes serve` answers the same at /mcp.
    Agents may look, add videos below `sources` (else from this home and your media folders), and have clips cut;
    deleting needs mcp_scopes = "add,delete". Work is done by workers: rushes worker.
    Requires: pip install 'rushes[mcp]'
    """
    with needed("mcp"):
        from rushes.surfaces.mcp.server import create  # noqa: PLC0415 - the extra may not be installed
        from rushes.surfaces.mcp.visit import LOCAL_PAGES  # noqa: PLC0415
    create(open_library(session, create=True), pages or LOCAL_PAGES).run()
    return 0
