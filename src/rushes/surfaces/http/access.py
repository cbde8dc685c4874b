"""Access control: checks the host, the caller, the origin page and the connection of each request."""

import platform
from dataclasses import dataclass, field
from hmac import compare_digest
from urllib.parse import quote

from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import Headers
from starlette.types import Scope

from rushes.domain.errors import NotAllowed, StoreAway
from rushes.library.access.accounts import LOCAL, STORAGE, Accounts, Caller, Settings
from rushes.metrics import Registry
from rushes.surfaces.http.bodies import BODY_BYTES
from rushes.surfaces.http.cookies import SESSION, cookie_of
from rushes.surfaces.http.problems import problem
from rushes.surfaces.http.proxy import Client, Network, client_of, is_address, is_loopback, parse_networks

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
UPLOADS = "/api/v1/uploads/"
STORAGE_EVENTS = "/api/v1/storage-events"
HEALTH = ("/healthz", "/readyz")
METRICS = "/metrics"
ANYONE = ("/login", "/setup")
CALLER = "rushes.caller"  # in the scope of a request that was let in


@dataclass(slots=True)
class AccessPolicy:
    """Decides which requests are accepted. `bound` is the address that the server listens on."""

    accounts: Accounts
    settings: Settings
    bound: str
    setup_code: str = ""  # shown in the terminal: lets the first account be made
    insecure: bool = False  # other machines may use plain HTTP
    metrics: Registry = field(default_factory=Registry)  # of this server
    proxies: tuple[Network, ...] = field(init=False)
    _was_open: bool = False

    def __post_init__(self) -> None:
        self.proxies = parse_networks(self.settings.proxy)

    @property
    def open(self) -> bool:
        """Whether everyone on this machine, and no one else, has full access."""
        self._was_open = is_loopback(self.bound) and not self.accounts.any
        return self._was_open

    def check(self) -> None:
        """Refuse to listen on a public address without authentication or encryption.

        Raises:
            NotAllowed: there is neither a token nor an account, or passwords would travel in the clear.
        """
        if is_loopback(self.bound):
            return
        if not self.accounts.any and not self.setup_code:
            raise NotAllowed(
                f"{self.bound} is reachable from other machines, but there is no password",
                "Set RUSHES_TOKEN, or create the first account: rushes serve --setup. Loopback needs neither.",
            )
        if not self.insecure and not self.proxies:
            raise NotAllowed(
                f"{self.bound} is reachable from other machines, but plain HTTP lets others read passwords and videos",
                'Put a proxy with TLS in front and declare its address (proxy = "10.0.0.5" in rushes.toml), or accept '
                "it in a network that you trust: rushes serve --insecure.",
            )

    def client(self, scope: Scope) -> Client:
        """Where a request comes from."""
        return client_of(scope, self.proxies)

    def refusal(self, scope: Scope, client: Client) -> Response | None:
        """Why a request is refused; if None, the scope of the request names the caller."""
        headers, path = Headers(scope=scope), scope["path"]
        if not is_our_host(headers.get("host", ""), self.bound, self.settings.hosts):
            return wrong_host()
        if scope["method"] not in SAFE and not self._is_our_page(headers):
            return problem(
                403, "the request came from another site", "Open rushes directly in the browser.", "CrossSite"
            )
        length = headers.get("content-length", "0")
        if not path.startswith(UPLOADS) and length.isdigit() and int(length[:20]) > BODY_BYTES:
            return problem(413, f"more than {BODY_BYTES} bytes", "Upload videos with /api/v1/uploads.", "TooLarge")
        if path in HEALTH:  # a probe asks nothing of the store here, which may be away
            return None
        is_open = self._open_for(path)
        if no := self._exposed(client, is_open=is_open):
            return no
        caller = Caller(LOCAL, admin=True, address=client.address) if is_open else self._caller(scope, headers, client)
        scope[CALLER] = caller
        if caller or path in ANYONE or path.startswith("/static/") or self._is_preflight(scope, headers):
            return None
        return self._unauthorized(scope, headers)

    def _open_for(self, path: str) -> bool:
        """For figures the last answer holds while the store is away: they say that it is."""
        try:
            return self.open
        except StoreAway:
            if path != METRICS:
                raise
            return self._was_open

    def _exposed(self, client: Client, *, is_open: bool) -> Response | None:
        """Others would come in through a proxy as if they sat here, or be read along."""
        if is_open and client.forwarded and not client.proxied:
            return problem(
                403,
                "a proxy is in front of a server that is open to everyone on this machine",
                'Create an account (rushes users add NAME), or declare the proxy (proxy = "ADDRESS" in rushes.toml) '
                "if it authenticates users itself.",
                "OpenBehindProxy",
            )
        if not self.insecure and not client.proxied and not is_loopback(self.bound) and not is_loopback(client.peer):
            return problem(403, "this connection is not encrypted", "Use the TLS proxy: https://...", "PlainHttp")
        return None

    def _unauthorized(self, scope: Scope, headers: Headers) -> Response:
        if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
            page = "/setup" if not self.accounts.any else f"/login?next={quote(scope['path'])}"
            return RedirectResponse(page, 303)
        said = {"WWW-Authenticate": "Bearer"}
        hint = "Send Authorization: Bearer TOKEN, or log in at /login."
        return problem(401, "authentication required", hint, "Unknown", said)

    def _caller(self, scope: Scope, headers: Headers, client: Client) -> Caller | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            if scope["path"] == STORAGE_EVENTS and self._is_storage(token.strip()):
                return Caller(STORAGE, admin=False, address=client.address)
            return self.accounts.token_caller(token.strip(), client.address)
        return self.accounts.session_caller(cookie_of(scope, SESSION), client.address)

    def _is_storage(self, token: str) -> bool:
        own = self.settings.events_token
        return bool(own) and compare_digest(own.encode(), token.encode("utf-8", "replace"))

    def _is_preflight(self, scope: Scope, headers: Headers) -> bool:
        """A browser asks on behalf of a listed page whether it may ask: it cannot say yet who it is."""
        listed = headers.get("origin", "").lower() in _listed(self.settings.cors)
        return scope["method"] == "OPTIONS" and listed and "access-control-request-method" in headers

    def _is_our_page(self, headers: Headers) -> bool:
        """A browser says where a request was made; a program says nothing."""
        origin = headers.get("origin", "")
        if origin and origin.lower() in _listed(self.settings.cors):
            return True
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return False
        return not origin or origin.lower().partition("://")[2] == headers.get("host", "").lower()


def is_our_host(host: str, bound: str, more: str) -> bool:
    """Against rebinding: a name that is not ours was made to point here by somebody; an address cannot be.

    Ours are the address that is listened on, the names of this machine, and `more`, comma separated.
    """
    name, node = host_name(host), platform.node().lower()
    return name in {"localhost", node, f"{node}.local", bound.lower(), *_listed(more)} or is_address(name)


def wrong_host() -> Response:
    """The answer to who calls this server by a name that is not its own."""
    return problem(421, "unknown host name", "Add the name to hosts in rushes.toml.", "WrongHost")


def _listed(text: str) -> set[str]:
    return {part.strip().lower() for part in text.split(",") if part.strip()}


def host_name(host: str) -> str:
    """A Host header without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
