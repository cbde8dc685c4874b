"""A remote file read block by block, on demand."""

import io
import os
from collections.abc import Callable
from typing import Any


class RangedReader(io.RawIOBase):
    """A file of `size` bytes; `block` opens a local file with the bytes of one block."""

    def __init__(self, size: int, block_size: int, block: Callable[[int], int]) -> None:
        self._size, self._block_size, self._block = size, block_size, block
        self._at = 0
        self._held: tuple[int, int] | None = None  # number and descriptor of the block read last

    def readable(self) -> bool:
        """It is for reading."""
        return True

    def seekable(self) -> bool:
        """Any offset can be read next."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Read on from there; nothing is fetched yet."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"before the beginning: {base + offset}")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Bytes of the block that the next one lies in; none at the end."""
        if self._at >= self._size:
            return 0
        number, inside = divmod(self._at, self._block_size)
        data = os.pread(self._descriptor(number), len(buffer), inside)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        """Let go of the block held."""
        held, self._held = self._held, None
        if held:
            os.close(held[1])
        super().close()

    def _descriptor(self, number: int) -> int:
        if self._held is None or self._held[0] != number:
            fresh = self._block(number)
            if self._held:
                os.close(self._held[1])
            self._held = (number, fresh)
        return self._held[1]
