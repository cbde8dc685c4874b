"""TLS of the gRPC server: its certificate, and whose certificates callers must have. Renewed files are read again."""

from pathlib import Path
from typing import Any

import grpc

from rushes.domain.errors import Refused
from rushes.settings import Settings


def server_credentials(settings: Settings) -> Any:
    """What a server shows and asks for; None if it has no certificate.

    Raises:
        Refused: a file cannot be read.
    """
    if not settings.grpc_cert:
        return None
    files = Certificates(settings)
    return grpc.dynamic_ssl_server_credentials(files.read(), files.renewed, bool(settings.grpc_ca))


class Certificates:
    """The files of the settings."""

    def __init__(self, settings: Settings) -> None:
        if not settings.grpc_key:
            raise Refused("grpc_cert needs grpc_key", "Set the file with its private key.")
        self._paths = [Path(path) for path in (settings.grpc_key, settings.grpc_cert, settings.grpc_ca) if path]
        self._seen: list[int] = []

    def read(self) -> Any:
        """What they say now. Raises Refused."""
        try:
            seen = [path.stat().st_mtime_ns for path in self._paths]
            key, cert, *ca = [path.read_bytes() for path in self._paths]
        except OSError as e:
            raise Refused(f"{e.filename}: {e.strerror}", "Check grpc_cert, grpc_key and grpc_ca.") from e
        self._seen = seen
        return grpc.ssl_server_certificate_configuration([(key, cert)], ca[0] if ca else None)

    def renewed(self) -> Any:
        """What they say, if it is something else than before; asked before each handshake, so it never raises."""
        try:
            changed = [path.stat().st_mtime_ns for path in self._paths] != self._seen
            return self.read() if changed else None
        except (OSError, Refused):  # just being replaced: the old one still holds
            return None
