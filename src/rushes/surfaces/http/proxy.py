"""Where a request comes from: the peer, or the client that a declared proxy names."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from rushes.domain.errors import Refused

FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-real-ip")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Client:
    """Where a request comes from."""

    address: str
    scheme: str
    peer: str  # who opened the connection: the client, or a proxy
    proxied: bool  # by a proxy that was declared
    forwarded: bool  # it says that some proxy was on its way


def parse_networks(text: str) -> tuple[Network, ...]:
    """The addresses and networks of a setting.

    Raises:
        Refused: one is neither.
    """
    try:
        return tuple(ipaddress.ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip())
    except ValueError as e:
        raise Refused(f"proxy: {e}", 'For example: proxy = "127.0.0.1, 10.0.0.0/8"') from e


def client_of(scope: Scope, proxies: Sequence[Network]) -> Client:
    """The client; what a peer says that is no declared proxy counts for nothing."""
    headers, peer = Headers(scope=scope), (scope.get("client") or ("", 0))[0]
    forwarded = any(name in headers for name in FORWARDED)
    if not _is_in(peer, proxies):
        return Client(peer, scope["scheme"], peer, proxied=False, forwarded=forwarded)
    hops = [hop.strip() for hop in ",".join(headers.getlist("x-forwarded-for")).split(",") if hop.strip()]
    address = next((hop for hop in reversed(hops) if not _is_in(hop, proxies)), peer)
    scheme = headers.get("x-forwarded-proto", scope["scheme"]).rpartition(",")[2].strip().lower()
    return Client(address[:60], "https" if scheme == "https" else "http", peer, proxied=True, forwarded=forwarded)


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


def _is_in(address: str, networks: Sequence[Network]) -> bool:
    if not is_address(address):
        return False
    found = ipaddress.ip_address(address)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return any((mapped or found) in network for network in networks)
