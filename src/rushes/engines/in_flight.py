"""Questions without an answer, up to a bound, of all processes of a worker: a file each, so that none is forgotten."""

import hashlib
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rushes.files import locked, make_private, write_whole

_ASKING, _ASKED = ".asking", ".asked"
_ASKING_SECONDS = 60.0  # after which nobody is still asking


class InFlight:
    """The questions of the processes that share a folder of this machine; one that died leaves its own here."""

    def __init__(self, folder: Path, most: int) -> None:
        self.most, self._folder = most, folder

    def enter(self, name: str) -> bool:
        """Whether one more may be asked; it counts from now on."""
        make_private(self._folder)
        file = self._file(name)
        with locked(self._folder / ".lock"):
            if len({other.stem for other in self._files()} - {file.stem}) >= self.most:
                return False
            write_whole(file, name.encode())
        return True

    def asked(self, name: str) -> None:
        """It has been asked, and that is noted where others see it."""
        with suppress(FileNotFoundError):  # answered by now
            self._file(name).rename(self._file(name).with_suffix(_ASKED))

    def leave(self, name: str) -> None:
        """It is answered, or was not asked."""
        for suffix in (_ASKING, _ASKED):
            self._file(name).with_suffix(suffix).unlink(missing_ok=True)

    def names(self) -> Iterator[str]:
        """Those that were asked, or whose process died meanwhile."""
        for file in self._files():
            with suppress(FileNotFoundError):  # it has just left
                if file.suffix == _ASKED or time.time() - file.stat().st_mtime > _ASKING_SECONDS:
                    yield file.read_text()

    def _files(self) -> list[Path]:
        return [*self._folder.glob(f"*{_ASKING}"), *self._folder.glob(f"*{_ASKED}")]

    def _file(self, name: str) -> Path:
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}{_ASKING}"
