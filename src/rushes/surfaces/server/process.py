"""The server process: listens until a signal, then closes every stream."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import ClassVar

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LAST_SECONDS = 3  # that answers may still take when told to stop; streams end at once
WAITING = 500  # connections whose request has not come yet; then the oldest is closed
HEADER_SECONDS = 20.0  # that a request's first lines may take: uvicorn itself has no limit


@contextmanager
def signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Meanwhile signals are handled so."""
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


class TimeoutProtocol(H11Protocol):
    """A connection that is closed when the first lines of a request do not come."""

    _late: asyncio.TimerHandle | None = None
    _waiting: ClassVar[dict["TimeoutProtocol", None]] = {}  # the oldest first

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        """They came, or some more of them."""
        super().data_received(data)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for."""
        self._stop()
        super().connection_lost(exc)

    def _look(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._late is None:
            self._late = self.loop.call_later(HEADER_SECONDS, self.transport.close)
            self._waiting[self] = None
            if len(self._waiting) > WAITING:
                next(iter(self._waiting)).hang_up()

    def hang_up(self) -> None:
        """Leave a connection whose request did not come yet, to make room for others."""
        self._stop()
        self.transport.close()

    def _stop(self) -> None:
        if self._late:
            self._late.cancel()
        self._late = None
        self._waiting.pop(self, None)


class Server(uvicorn.Server):
    """Hangs up on streams at the first signal, and leaves the rest of the process to its caller."""

    def __init__(self, app: FastAPI, host: str, port: int) -> None:
        self.told = 0  # the signal that ended it
        self._hub = app.state.hub
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            http=TimeoutProtocol,
            log_config=None,  # its lines go where ours go
            access_log=False,  # the middleware writes one, without secrets
            server_header=False,
            proxy_headers=False,  # whom to believe is decided by the access policy
            timeout_graceful_shutdown=LAST_SECONDS,
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ours while it serves; what they mean for the process is the caller's business."""
        with signals(self.handle_exit) if threading.current_thread() is threading.main_thread() else nullcontext():
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop listening; twice stops now."""
        self.told = sig
        self._hub.hang_up()
        super().handle_exit(sig, frame)
