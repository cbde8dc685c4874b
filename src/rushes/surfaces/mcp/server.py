"""The MCP server over a library: tools by scope, transcripts as resources, prompts."""

import logging
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from rushes.domain.errors import NotFound, Refused, RushesError
from rushes.library import Library, version
from rushes.surfaces.mcp import prompts
from rushes.surfaces.mcp.tool_call import LOCAL_PAGES
from rushes.surfaces.mcp.tools import Tools, explained, transcript_text


def create(library: Library, pages: str = LOCAL_PAGES) -> MCPServer[Any]:
    """A server with the tools that the setting `mcp_scopes` allows.

    Raises:
        Refused: there is no such scope.
    """
    handlers, level = logging.root.handlers[:], logging.root.level
    server: MCPServer[Any] = MCPServer(
        "rushes", version=version(), instructions=prompts.INSTRUCTIONS, subscriptions=False
    )
    logging.root.handlers[:] = handlers  # it logs to a console of its own
    logging.root.setLevel(level)
    _add_tools(server, Tools(library, pages), library.settings.mcp_scopes)
    _add_resources(server, library)
    for prompt in (prompts.search_help, prompts.find_moment, prompts.summarise_video):
        server.prompt()(prompt)
    return server


def _add_tools(server: MCPServer[Any], tools: Tools, allowed: str) -> None:
    scopes = tools.scopes()
    wanted = {"read", *(name for part in allowed.split(",") if (name := part.strip()))}
    if unknown := wanted - set(scopes):
        raise Refused(f"unknown scope {min(unknown)!r} in mcp_scopes", f"Choose from: {', '.join(scopes)}")
    for scope, (annotations, functions) in scopes.items():
        for function in functions if scope in wanted else ():
            server.add_tool(explained(function), annotations=annotations)


def _add_resources(server: MCPServer[Any], library: Library) -> None:
    @server.resource("rushes://videos/{video_id}/transcript", mime_type="text/plain")
    def transcript(video_id: str) -> str:
        """The whole transcript of a video: one line each, with its time range in seconds."""
        try:
            return transcript_text(library, library.videos.get(video_id))
        except NotFound as e:
            raise ResourceNotFoundError(str(e)) from e
        except RushesError as e:
            raise ResourceError(str(e)) from e

    @server.resource("rushes://search/grammar", mime_type="text/markdown")
    def grammar() -> str:
        """How to write a search query."""
        return prompts.GRAMMAR
