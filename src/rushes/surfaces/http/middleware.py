"""Middleware: applies the access policy and body limits, writes the audit and access logs, adds headers."""

import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext

from anyio.to_thread import run_sync
from fastapi.responses import Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rushes.domain.errors import RushesError
from rushes.library.access.throttle import network
from rushes.surfaces.http.access import CALLER, SAFE, UPLOADS, AccessPolicy
from rushes.surfaces.http.audit import write_entry
from rushes.surfaces.http.bodies import OpenBodies, TooManyAtOnce, limited
from rushes.surfaces.http.problems import problem_of
from rushes.surfaces.http.proxy import Client
from rushes.telemetry import log, request_id
from rushes.tracing import HEADER, span

CONTENT_POLICY = (  # pages connect to us, and to the bucket that films lie in
    "default-src 'self'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; media-src 'self' blob:{0}; worker-src 'self' blob:; connect-src 'self'{0}; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
REQUEST_ID = "X-Request-Id"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")  # what others may call a request
BEHIND_TLS = {"Strict-Transport-Security": "max-age=31536000"}


class AccessMiddleware:
    """Refuses a request, or hands it on."""

    def __init__(self, app: ASGIApp, policy: AccessPolicy, origin: str) -> None:
        """`origin` is the bucket that pages may send films to and play them from, "" for none."""
        self._app, self._policy, self._bodies = app, policy, OpenBodies()
        self._headers = HEADERS | {"Content-Security-Policy": CONTENT_POLICY.format(f" {origin}" if origin else "")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = self._policy.client(scope)
        scope["client"], scope["scheme"] = (client.address, 0), client.scheme
        request_id.set(_id_of(scope))
        sending = self._told(scope, send)
        if no := await run_sync(self._refusal, scope, client):
            await no(scope, receive, sending)
            return
        upload, reads = scope["path"].startswith(UPLOADS), scope["method"] in SAFE
        try:
            with self._recorded(scope), nullcontext() if reads else self._bodies.sending(network(client.address)):
                await self._app(scope, limited(receive, upload=upload), sending)
        except TooManyAtOnce as e:
            await problem_of(e)(scope, receive, sending)

    @staticmethod
    def _recorded(scope: Scope) -> AbstractContextManager[None]:
        """Where traces are on, a request goes on with the trace of who asks."""
        return span(f"HTTP {scope['method']}", Headers(scope=scope).get(HEADER, ""), path=scope["path"])

    def _refusal(self, scope: Scope, client: Client) -> Response | None:
        try:
            return self._policy.refusal(scope, client)
        except RushesError as e:
            return problem_of(e)

    def _count(self, method: str, status: int, seconds: float) -> None:
        method = method if method in METHODS else "other"
        self._policy.metrics.add("rushes_http_requests_total", method=method, status=str(status))
        self._policy.metrics.observe("rushes_http_request_seconds", seconds, method=method)

    def _told(self, scope: Scope, send: Send) -> Callable[[Message], Awaitable[None]]:
        begun = time.monotonic()

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                more = BEHIND_TLS if scope["scheme"] == "https" else {}
                for name, value in {**self._headers, **more, REQUEST_ID: request_id.get()}.items():
                    headers.setdefault(name, value)
                seconds = time.monotonic() - begun
                self._count(scope["method"], message["status"], seconds)
                _log_access(scope, message["status"], seconds)
                await write_entry(self._policy.accounts.audit, scope, message["status"])
            await send(message)

        return told


def _id_of(scope: Scope) -> str:
    """What the client or a proxy calls the request, if that is a plain name; else a new one."""
    given = Headers(scope=scope).get(REQUEST_ID, "")
    return given if _ID.match(given) else secrets.token_hex(8)


def _log_access(scope: Scope, status: int, seconds: float) -> None:
    """One line for each answer, when it begins; without the query, which may hold secrets."""
    caller = scope.get(CALLER)
    about = {"method": scope["method"], "path": scope["path"], "status": status, "ms": round(seconds * 1000)}
    about |= {"address": scope["client"][0], "user": caller.name if caller else None}
    log.log(logging.ERROR if status >= 500 else logging.INFO, "%(method)s %(path)s %(status)d", about, extra=about)
