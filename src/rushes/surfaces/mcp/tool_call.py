"""One call of an MCP tool: its library, its caller, and the address of the pages for links."""

from dataclasses import dataclass

from mcp.server.mcpserver import Context

from rushes.library import Library
from rushes.library.access.audit import Audit

LOCAL_PAGES = "http://127.0.0.1:8000"  # where `rushes serve` listens unless it is told otherwise


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool."""

    library: Library
    base: str  # address of the pages
    is_open: bool  # whoever asks may do what the user of this machine may
    who: str = ""  # "" is the user of this terminal
    address: str = ""

    def note(self, action: str, target: str) -> None:
        """Add a change to the audit log."""
        audit = Audit(self.library.home)
        audit.write(action, self.who, self.address, target) if self.who else audit.write_here(action, target)


def tool_call_of(ctx: Context, library: Library, pages: str) -> ToolCall:
    """From an HTTP request, or from the program that started this process."""
    request = ctx.request_context.request
    if request is None:
        return ToolCall(library, pages.rstrip("/"), is_open=True)
    from rushes.surfaces.http.access import CALLER  # noqa: PLC0415 - only where there is HTTP

    caller = request.scope[CALLER]
    is_open: bool = request.app.state.access.open
    return ToolCall(library, str(request.base_url).rstrip("/"), is_open, caller.name, caller.address)
