"""Limits of request bodies: size, time, rate of uploads, and how many one address sends at once."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import HTTPException
from starlette.types import Message, Receive

from rushes.domain.errors import Refused

BODY_BYTES = 1_000_000  # of anything but an upload
BODY_SECONDS = 30.0  # that a body may take in all, and a silence within an upload
UPLOAD_SECONDS = 60.0  # that an upload may take besides those its bytes allow
UPLOAD_RATE = 1024  # bytes in a second that an upload must reach over its whole time
AT_ONCE = 100  # requests of one address that send something


class TooManyAtOnce(Refused):
    """One address sends too many requests at the same time."""

    retry_after = 1


class OpenBodies:
    """Requests whose bodies are arriving, by address."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()

    @contextmanager
    def sending(self, address: str) -> Iterator[None]:
        """While a body arrives; only called in the event loop.

        Raises:
            TooManyAtOnce: that would be one too many.
        """
        if self._count[address] >= AT_ONCE:
            raise TooManyAtOnce(f"more than {AT_ONCE} requests at the same time", "Send fewer at once.")
        self._count[address] += 1
        try:
            yield
        finally:
            self._count[address] -= 1
            self._count += Counter()  # forgets those that are zero


def limited(receive: Receive, *, upload: bool) -> Receive:
    """A body with limits of size (uploads check their own) and of time."""
    began, got, whole = time.monotonic(), 0, False

    async def next_part() -> Message:
        nonlocal got, whole
        if whole:
            return await receive()
        end = began + (UPLOAD_SECONDS + got / UPLOAD_RATE if upload else BODY_SECONDS)
        try:
            message: Any = await asyncio.wait_for(receive(), min(BODY_SECONDS, end - time.monotonic()))
        except TimeoutError as e:
            if upload:
                return {"type": "http.disconnect"}
            raise HTTPException(408, "the rest of the request did not arrive in time") from e
        got += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if got > BODY_BYTES and not upload:
            raise HTTPException(413, f"more than {BODY_BYTES} bytes")
        return dict(message)

    return next_part
