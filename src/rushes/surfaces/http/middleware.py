"""Middleware: applies the access policy, limits what is sent, writes the audit log, adds headers to answers."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext

from anyio.to_thread import run_sync
from fastapi.responses import Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rushes.domain.errors import RushesError
from rushes.library.access.throttle import network
from rushes.surfaces.http.access import SAFE, UPLOADS, AccessPolicy
from rushes.surfaces.http.audit import write_entry
from rushes.surfaces.http.bodies import OpenBodies, TooManyAtOnce, limited
from rushes.surfaces.http.problems import problem_of
from rushes.surfaces.http.proxy import Client

CONTENT_POLICY = (  # pages connect to us, and to the bucket that films are sent to
    "default-src 'self'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; media-src 'self' blob:; worker-src 'self' blob:; connect-src 'self'{}; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
BEHIND_TLS = {"Strict-Transport-Security": "max-age=31536000"}


class AccessMiddleware:
    """Refuses a request, or hands it on."""

    def __init__(self, app: ASGIApp, policy: AccessPolicy, origin: str) -> None:
        """`origin` is the bucket that pages may send films to, "" for none."""
        self._app, self._policy, self._bodies = app, policy, OpenBodies()
        self._headers = HEADERS | {"Content-Security-Policy": CONTENT_POLICY.format(f" {origin}" if origin else "")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = self._policy.client(scope)
        scope["client"], scope["scheme"] = (client.address, 0), client.scheme
        sending = self._told(scope, send)
        if no := await run_sync(self._refusal, scope, client):
            await no(scope, receive, sending)
            return
        upload, reads = scope["path"].startswith(UPLOADS), scope["method"] in SAFE
        try:
            with nullcontext() if reads else self._bodies.sending(network(client.address)):
                await self._app(scope, limited(receive, upload=upload), sending)
        except TooManyAtOnce as e:
            await problem_of(e)(scope, receive, sending)

    def _refusal(self, scope: Scope, client: Client) -> Response | None:
        try:
            return self._policy.refusal(scope, client)
        except RushesError as e:
            return problem_of(e)

    def _told(self, scope: Scope, send: Send) -> Callable[[Message], Awaitable[None]]:
        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                more = BEHIND_TLS if scope["scheme"] == "https" else {}
                for name, value in {**self._headers, **more}.items():
                    headers.setdefault(name, value)
                self._policy.requests[scope["method"], message["status"]] += 1
                await write_entry(self._policy.accounts.audit, scope, message["status"])
            await send(message)

        return told
