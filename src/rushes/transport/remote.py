"""Hints for a worker without credentials: its server announces, and the worker waits there."""

import threading
from collections.abc import Sequence
from typing import Any

import grpc

from rushes.remote.client import RemoteServer
from rushes.remote.generated import workers_pb2 as pb

LOOK_SECONDS = 2.0


class RemoteHints:
    """Waits at the server, and by itself when the server has too many who wait."""

    queues = False
    look_seconds = LOOK_SECONDS

    def __init__(self, server: RemoteServer) -> None:
        self._server = server
        self._woken = threading.Event()
        self._waits: set[Any] = set()

    def announce(self, lane: str, tasks: Sequence[str], attempt: int = 1) -> None:
        """The server does."""

    def missing(self, lane: str, tasks: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 - the server knows
        return ()

    def wait(self, lanes: Sequence[str], seconds: float, n: int = 10) -> tuple[str, ...]:  # noqa: ARG002
        """() always: a hint only wakes."""
        if self._woken.is_set() or not seconds:
            return ()
        call = self._server.begin("Wait", pb.WaitRequest(lanes=lanes, seconds=seconds), seconds + 5.0)
        self._waits.add(call)
        try:
            if not call.result().busy:
                return ()
        except (grpc.RpcError, grpc.FutureCancelledError):
            pass  # the server is away, or somebody wakes us
        finally:
            self._waits.discard(call)
        self._woken.wait(min(seconds, LOOK_SECONDS))
        return ()

    def keep(self, tasks: Sequence[str]) -> None:
        """The server does, with each renewal."""

    def settle(self, tasks: Sequence[str]) -> None:
        """The server does."""

    def check(self, _lanes: Sequence[str]) -> str:
        return "by waiting at the server"

    def wake(self) -> None:
        self._woken.set()
        for call in list(self._waits):
            call.cancel()

    def close(self) -> None:
        self.wake()
