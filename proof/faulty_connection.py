"""A wire between a client and its store that can go deaf: words go in, no reply comes out, then it breaks."""

import contextlib
import socket
import threading
from urllib.parse import urlsplit, urlunsplit


class Cutter:
    """Listens on loopback and passes everything on to the store until told otherwise."""

    def __init__(self, store: str) -> None:
        parts = urlsplit(store)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 0)
        self._server = socket.create_server(("127.0.0.1", 0))
        who = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
        self.url = urlunsplit(parts._replace(netloc=f"{who}127.0.0.1:{self._server.getsockname()[1]}"))
        self._deaf = threading.Event()
        self._pairs: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def deafen(self) -> None:
        """From now on replies are swallowed."""
        self._deaf.set()

    def mend(self) -> None:
        """Break every connection; new ones work."""
        pairs, self._pairs = self._pairs, []
        self._deaf.clear()
        for end in pairs:
            _shut(end)

    def close(self) -> None:
        """Let go of everything."""
        _shut(self._server)
        self.mend()

    def _accept(self) -> None:
        while True:
            try:
                client = self._server.accept()[0]
                store = socket.create_connection(self._target)
            except OSError:
                return
            self._pairs += [client, store]
            threading.Thread(target=self._pass, args=(client, store), daemon=True).start()
            threading.Thread(target=self._pass, args=(store, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, replies: bool = False) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not (replies and self._deaf.is_set()):
                    sink.sendall(data)
        _shut(source)
        _shut(sink)


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
