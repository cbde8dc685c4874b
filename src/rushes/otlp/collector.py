"""The collector named by OTEL_*: its address, headers and protocol, and the name of this service."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from rushes.domain.redaction import redact
from rushes.telemetry import Outage, log

TRACES, METRICS = "traces", "metrics"
PROTOCOL = "http/protobuf"
TYPE = "application/x-protobuf"
SECONDS = 10.0
_AGAIN = (408, 429, 502, 503, 504)
Environment = Mapping[str, str]
ENVIRON: Environment = MappingProxyType(os.environ)


@dataclass(frozen=True)
class Collector:
    """Takes one kind of telemetry; threads of this process send to it."""

    signal: str
    url: str
    headers: Mapping[str, str]
    seconds: float = SECONDS
    compressed: bool = False
    ca: str = ""
    cert: str = ""
    key: str = ""

    def send(self, message: bytes) -> bool:
        """Whether it is over with this message: it was taken, or will never be; else try again later."""
        import gzip  # noqa: PLC0415 - only for those who send
        import http.client  # noqa: PLC0415
        import urllib.error  # noqa: PLC0415
        import urllib.request  # noqa: PLC0415

        headers = {"Content-Type": TYPE, "User-Agent": "rushes", **self.headers}
        if self.compressed:
            message, headers["Content-Encoding"] = gzip.compress(message), "gzip"
        try:
            request = urllib.request.Request(self.url, message, headers)  # noqa: S310 - what the operator has set
            with urllib.request.urlopen(request, timeout=self.seconds, context=self._tls()):  # noqa: S310
                self._outage.ended()
        except urllib.error.HTTPError as e:
            self._outage.began(redact(str(e)))
            return e.code not in _AGAIN
        except (OSError, ValueError, http.client.HTTPException) as e:  # the last: it speaks another protocol
            self._outage.began(redact(f"{type(e).__name__}: {e}"))
            return False
        return True

    @cached_property
    def _outage(self) -> Outage:
        return Outage(f"the collector does not accept {self.signal}")

    def _tls(self) -> Any:
        if not self.url.startswith("https:"):
            return None
        import ssl  # noqa: PLC0415

        context = ssl.create_default_context(cafile=self.ca or None)
        if self.cert:
            context.load_cert_chain(self.cert, self.key or None)
        return context


def collector(signal: str, env: Environment = ENVIRON) -> Collector | None:
    """The collector of a kind of telemetry; None: there shall be none, or it cannot be spoken to."""
    if not wanted(signal, env):
        return None
    if (protocol := _of(signal, "PROTOCOL", env) or PROTOCOL) != PROTOCOL:
        log.warning("no %s: OTLP is sent over %s, not %s", signal, PROTOCOL, protocol)
        return None
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.proto") is None:
        log.warning("no %s: opentelemetry-proto is not installed; pip install 'rushes[otel]'", signal)
        return None
    own, all_of_them = env.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"), env.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    return Collector(
        signal,
        own or f"{(all_of_them or '').rstrip('/')}/v1/{signal}",
        _pairs(_of(signal, "HEADERS", env)),
        number(_of(signal, "TIMEOUT", env), 1000 * SECONDS) / 1000,
        _of(signal, "COMPRESSION", env) == "gzip",
        _of(signal, "CERTIFICATE", env),
        _of(signal, "CLIENT_CERTIFICATE", env),
        _of(signal, "CLIENT_KEY", env),
    )


def wanted(signal: str, env: Environment = ENVIRON) -> bool:
    """Whether the environment names a collector for it and does not switch it off."""
    exporters = env.get(f"OTEL_{signal.upper()}_EXPORTER", "") or "otlp"
    off = env.get("OTEL_SDK_DISABLED", "").lower() == "true" or "otlp" not in exporters.split(",")
    return not off and bool(_of(signal, "ENDPOINT", env))


def resource(process: str, env: Environment = ENVIRON) -> dict[str, str]:
    """Who sends: one process of one service on one machine."""
    from importlib.metadata import version  # noqa: PLC0415 - only for those who send

    host = platform.node()
    named = {"service.name": f"rushes {process}".strip(), "service.version": version("rushes"), "host.name": host,
             "service.instance.id": f"{host}:{os.getpid()}"}  # fmt: skip
    named |= _pairs(env.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    return named | ({"service.name": env["OTEL_SERVICE_NAME"]} if env.get("OTEL_SERVICE_NAME") else {})


def number(text: str, usual: float) -> float:
    """A number above 0 that a variable gives; the usual one if it gives none."""
    try:
        return float(text) if float(text) > 0 else usual
    except ValueError:
        return usual


def _of(signal: str, name: str, env: Environment) -> str:
    """A variable of this kind of telemetry, else the one for all."""
    found = env.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_{name}") or env.get(f"OTEL_EXPORTER_OTLP_{name}")
    return (found or "").strip()


def _pairs(text: str) -> dict[str, str]:
    """name=value, separated by commas, percent-encoded."""
    parts = (part.partition("=") for part in text.split(","))
    return {unquote(name.strip()): unquote(value.strip()) for name, sign, value in parts if sign and name.strip()}
