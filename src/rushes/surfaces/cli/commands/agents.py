"""The command that agents start to use the library: MCP over stdin and stdout."""

import click

from rushes.library import needed
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.options import open_library
from rushes.surfaces.cli.session import Session


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
        from rushes.surfaces.mcp.visit import LOCAL_PAGES  # noqa: PLC0415
    create(open_library(session, create=True), pages or LOCAL_PAGES).run()
    return 0
