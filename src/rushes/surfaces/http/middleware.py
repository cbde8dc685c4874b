"""Middleware: which host was meant, who asks, from which page, and how much they may send."""

import asyncio
import ipaddress
import platform
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from anyio.to_thread import run_sync
from fastapi import HTTPException
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rushes.domain.errors import NotAllowed, RushesError
from rushes.library.accounts import Accounts, Settings
from rushes.surfaces.http.problems import problem, status_of

COOKIE = "rushes_session"
BODY_BYTES = 1_000_000  # of anything but an upload
BODY_SECONDS = 30.0  # a body that does not come is not waited for
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
UPLOADS = "/api/v1/uploads/"
ANYONE = ("/healthz", "/readyz", "/login", "/setup")
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


@dataclass(slots=True)
class AccessPolicy:
    """Decides which requests are let in. `bound` is the address that is listened on."""

    accounts: Accounts
    settings: Settings
    bound: str
    setup_code: str = ""  # shown in the terminal: lets the first account be made from elsewhere
    requests: Counter[tuple[str, int]] = field(default_factory=Counter)

    @property
    def open(self) -> bool:
        """Whether everybody on this machine, and nobody else, may do everything."""
        return is_loopback(self.bound) and not self.accounts.any

    def check(self) -> None:
        """Refuse to listen where strangers are, unless they can be told from friends.

        Raises:
            NotAllowed: there is neither a token nor an account.
        """
        if not is_loopback(self.bound) and not self.accounts.any and not self.setup_code:
            raise NotAllowed(
                f"{self.bound} is reachable from other machines, but there is no password",
                "Set RUSHES_TOKEN, or create the first account: rushes serve --setup. Loopback needs neither.",
            )

    def refusal(self, scope: Scope) -> Response | None:
        """Why a request does not come in; None if it does."""
        headers, path = Headers(scope=scope), scope["path"]
        if not self._is_our_host(headers.get("host", "")):
            return problem(421, "this server is not called that", "Add the name to hosts in rushes.toml.", "WrongHost")
        if scope["method"] not in SAFE and not self._is_our_page(headers):
            return problem(403, "another site's page sent this", "Open rushes itself in the browser.", "CrossSite")
        length = headers.get("content-length", "0")
        if not path.startswith(UPLOADS) and length.isdigit() and int(length[:20]) > BODY_BYTES:
            return problem(413, f"more than {BODY_BYTES} bytes", "Send films by /api/v1/uploads.", "TooLarge")
        if self.open or path in ANYONE or path.startswith("/static/"):
            return None
        if self._is_preflight(scope, headers) or self._is_known(headers):
            return None
        return self._unauthorized(scope, headers)

    def _unauthorized(self, scope: Scope, headers: Headers) -> Response:
        if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
            page = "/setup" if not self.accounts.any else f"/login?next={quote(scope['path'])}"
            return RedirectResponse(page, 303)
        said = {"WWW-Authenticate": "Bearer"}
        return problem(401, "who are you?", "Send Authorization: Bearer TOKEN, or log in at /login.", "Unknown", said)

    def _is_known(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.accounts.knows_token(token.strip())
        return self.accounts.knows_session(cookie_of(headers))

    def _is_preflight(self, scope: Scope, headers: Headers) -> bool:
        """A browser asks on behalf of a listed page whether it may ask: it cannot say yet who it is."""
        listed = headers.get("origin", "").lower() in self._listed(self.settings.cors)
        return scope["method"] == "OPTIONS" and listed and "access-control-request-method" in headers

    def _is_our_host(self, host: str) -> bool:
        """Against rebinding: a name that is not ours was made to point here by somebody; an address cannot be."""
        name = host_name(host)
        node = platform.node().lower()
        own = {"localhost", node, f"{node}.local", self.bound.lower(), *self._listed(self.settings.hosts)}
        return name in own or is_address(name)

    def _is_our_page(self, headers: Headers) -> bool:
        """A browser says where a request was made; a program says nothing."""
        origin = headers.get("origin", "")
        if origin and origin.lower() in self._listed(self.settings.cors):
            return True
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return False
        return not origin or origin.lower().partition("://")[2] == headers.get("host", "").lower()

    @staticmethod
    def _listed(text: str) -> set[str]:
        return {part.strip().lower() for part in text.split(",") if part.strip()}


class AccessMiddleware:
    """Applies the policy: refuses, limits what is read, and puts the same headers on every answer."""

    def __init__(self, app: ASGIApp, policy: AccessPolicy, origin: str) -> None:
        """`origin` is the bucket that pages may send films to, "" for none."""
        self._app, self._policy = app, policy
        self._headers = HEADERS | {"Content-Security-Policy": CONTENT_POLICY.format(f" {origin}" if origin else "")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sending = self._told(scope, send)
        no = await run_sync(self._refusal, scope)
        if no:
            await no(scope, receive, sending)
        else:
            upload = scope["path"].startswith(UPLOADS)
            await self._app(scope, _limited(receive, upload=upload), sending)

    def _refusal(self, scope: Scope) -> Response | None:
        try:
            return self._policy.refusal(scope)
        except RushesError as e:
            return problem(status_of(e), str(e), e.advice, type(e).__name__)

    def _told(self, scope: Scope, send: Send) -> Callable[[Message], Awaitable[None]]:
        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                self._policy.requests[scope["method"], message["status"]] += 1
            await send(message)

        return told


def _limited(receive: Receive, *, upload: bool) -> Receive:
    """A body that ends: by size (but for uploads, which check their own) and by patience."""
    got, whole = 0, False

    async def next_part() -> Message:
        nonlocal got, whole
        if whole:
            return await receive()
        try:
            message: Any = await asyncio.wait_for(receive(), BODY_SECONDS)
        except TimeoutError as e:
            if upload:
                return {"type": "http.disconnect"}
            raise HTTPException(408, "the rest of the request did not come") from e
        got += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if got > BODY_BYTES and not upload:
            raise HTTPException(413, f"more than {BODY_BYTES} bytes")
        return dict(message)

    return next_part


def cookie_of(headers: Headers) -> str:
    """The session's secret that a browser sends."""
    return cookie_parser(headers.get("cookie", "")).get(COOKIE, "")


def host_name(host: str) -> str:
    """A Host header without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def is_address(name: str) -> bool:
    """Whether it is an IP address, which nobody can make point elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host == "localhost":
        return True
    return is_address(host) and ipaddress.ip_address(host).is_loopback
