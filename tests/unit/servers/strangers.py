"""Another user of this machine, and a web page of somebody else: neither knows a secret."""

import http.client
import os
import pickle
import socket
import ssl
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
STRANGER = 64_321  # a number that no account has: no file and no process is its own
SECONDS = 10.0
FOREIGN = {"Origin": "https://evil.example", "Host": "evil.example", "Content-Type": "text/plain"}
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # how gRPC begins


def as_stranger(act: Callable[[], T], user: int = STRANGER) -> T:
    """What `act` returns in a child that is another user where we are root, and ourselves without secrets elsewhere."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _act(act, user, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        answer = told.read()
    os.waitpid(pid, 0)
    what, failed = pickle.loads(answer)
    assert not failed, failed
    return what  # type: ignore[no-any-return]


def _act(act: Callable[[], object], user: int, writer: int) -> None:
    try:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        answer = (act(), "")
    except BaseException:  # noqa: BLE001 - told to the parent
        answer = (None, traceback.format_exc())
    os.write(writer, pickle.dumps(answer))
    os._exit(0)


def raw(port: int, sent: bytes) -> bytes:
    """What a port answers first to these bytes; nothing if it hangs up."""
    with socket.create_connection(("127.0.0.1", port), SECONDS) as s:
        try:
            s.sendall(sent)
            return s.recv(4096)
        except ConnectionError:
            return b""


def status(port: int, method: str, path: str) -> int:
    """The HTTP status that a web page of somebody else gets; 0 if the port does not speak HTTP."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request(method, path, b"evil" if method in ("PUT", "POST") else None, FOREIGN)
        return connection.getresponse().status
    except (http.client.HTTPException, ConnectionError):
        return 0
    finally:
        connection.close()


def over_tls(port: int, certificate: Path | None = None) -> bytes:
    """What a port says over TLS to somebody with a foreign certificate, or none; nothing if it refuses."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    if certificate:
        context.load_cert_chain(certificate)
    try:
        with socket.create_connection(("127.0.0.1", port), SECONDS) as s, context.wrap_socket(s) as tls:
            tls.sendall(PREFACE)
            return tls.recv(4096)
    except (ssl.SSLError, ConnectionError):
        return b""
