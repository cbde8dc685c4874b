"""MCP over HTTP: one request, one answer, no session, so that any server of a home can answer any request.

The SDK is loaded with the first request: it takes longer than everything else that a server loads.
"""

import asyncio
from functools import cached_property
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from rushes.library import Library, needed


class McpEndpoint:
    """Answers MCP requests of one application, from the first one until it is stopped."""

    def __init__(self, library: Library) -> None:
        self._library, self._stop, self._guard = library, asyncio.Event(), asyncio.Lock()
        self._runner: asyncio.Task[None] | None = None

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        async with self._guard:
            if self._runner is None:
                ready = asyncio.Event()
                manager = await asyncio.to_thread(lambda: self._manager)
                self._runner = asyncio.create_task(self._run(manager, ready))
                await ready.wait()
        await self._manager.handle_request(scope, receive, send)

    async def stop(self) -> None:
        """Stop answering."""
        self._stop.set()
        if self._runner:
            await self._runner

    @cached_property
    def _manager(self) -> Any:
        with needed("mcp"):
            from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415

            from rushes.surfaces.mcp.server import create  # noqa: PLC0415
        server = create(self._library)
        ours = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the access policy has looked already
        server.streamable_http_app(json_response=True, stateless_http=True, transport_security=ours)
        return server.session_manager

    async def _run(self, manager: Any, ready: asyncio.Event) -> None:
        async with manager.run():
            ready.set()
            await self._stop.wait()


class McpAnswer(Response):
    """The endpoint's answer, streamed."""

    def __init__(self, endpoint: McpEndpoint) -> None:
        super().__init__()
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        await self._endpoint.answer(scope, receive, send)


async def serve_mcp(request: Request) -> Response:
    """The Model Context Protocol for agents."""
    return McpAnswer(request.app.state.mcp)
