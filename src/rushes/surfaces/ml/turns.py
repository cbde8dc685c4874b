"""A request's turn: let in up to a bound, worked on in a thread, given up when its caller hangs up."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from fastapi import HTTPException, Request

from rushes.domain.errors import OverLimit
from rushes.library.inference import Cancelled, Check, InferenceService

BODY_SECONDS = 60.0
Found = TypeVar("Found")


class Turns:
    """The requests that are being served."""

    def __init__(self, service: InferenceService, bound: int) -> None:
        self._service = service
        self._pool = ThreadPoolExecutor(bound, "inference")
        self._running: set[threading.Event] = set()

    def hang_up(self) -> None:
        """The server stops: whatever waits or runs is given up."""
        for cancelled in list(self._running):
            cancelled.set()

    async def body(self, request: Request, most: int) -> bytes:
        """The body of a request.

        Raises:
            OverLimit: it is too large.
            HTTPException: it did not come in time.
        """
        data = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for part in request.stream():
                    data += part
                    if len(data) > most:
                        raise OverLimit(f"more than {most} bytes")
        except TimeoutError as e:
            raise HTTPException(408, "the rest of the request did not arrive in time") from e
        return bytes(data)

    async def take(self, request: Request, work: Callable[[Check], Found]) -> Found:
        """Do work in a thread; `work` is given a check that raises once the client disconnected."""
        cancelled = threading.Event()

        def check() -> None:
            if cancelled.is_set():
                raise Cancelled("the client disconnected")

        running: asyncio.Future[Found] = asyncio.get_running_loop().run_in_executor(self._pool, work, check)
        gone = asyncio.create_task(_hung_up(request))
        self._running.add(cancelled)
        try:
            waited: set[asyncio.Future[Any]] = {running, gone}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                cancelled.set()
            return await running
        finally:
            cancelled.set()
            gone.cancel()
            self._running.discard(cancelled)


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
