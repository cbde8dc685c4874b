"""Files and folders as sources: looked at, never opened as media, and never left by a link."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from rushes.domain.errors import SourceMissing
from rushes.domain.video import Fingerprint
from rushes.sources.port import Found, LeftOut

VIDEO = (".3g2", ".3gp", ".avi", ".divx", ".dv", ".f4v", ".flv", ".m2ts", ".m2v", ".m4v", ".mkv", ".mov", ".mp4",
         ".mpeg", ".mpg", ".mts", ".mxf", ".ogm", ".ogv", ".qt", ".ts", ".vob", ".webm", ".wmv")  # fmt: skip
AUDIO = (".aac", ".aif", ".aiff", ".flac", ".m4a", ".m4b", ".mka", ".mp3", ".oga", ".ogg", ".opus", ".wav", ".wma")
_NOT_FOOTAGE = frozenset({"$RECYCLE.BIN", "System Volume Information", "lost+found", "@eaDir", "#recycle"})


def find(paths: Iterable[Path]) -> Iterator[Found | LeftOut]:
    """Files as they are named, folders with everything below that looks like footage; each file once.

    A link that is named itself is resolved; a link inside a folder is not followed out of it.
    """
    met: set[Path] = set()
    for path in paths:
        for entry in _named(path):
            if entry.path not in met:
                met.add(entry.path)
                yield entry


def fingerprint(path: Path, base: Path | None = None) -> Fingerprint:
    """The cheap identity of a file; its path is relative to `base` (the home's folder) if it lies below.

    Raises:
        SourceMissing: it is not there, or not a regular file.
    """
    real = _real(path)
    try:
        found = real.lstat()
    except (OSError, ValueError) as error:
        raise SourceMissing(f"{path} is not there") from error
    if not stat.S_ISREG(found.st_mode):
        raise SourceMissing(f"{path} is not a regular file")
    folder = _real(base) if base else None
    shown = real.relative_to(folder) if folder and real.is_relative_to(folder) else real
    return Fingerprint(str(shown), found.st_size, found.st_mtime_ns, found.st_ino)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _named(path: Path) -> Iterator[Found | LeftOut]:
    try:
        real = _real(path)
        mode = real.stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        yield LeftOut(path, _reason(error))
        return
    if stat.S_ISDIR(mode):
        yield from _below(real)
    else:
        yield _looked_at(real)


def _below(top: Path) -> Iterator[Found | LeftOut]:
    waiting: list[Path] = [top]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda e: e.name)
        except OSError as error:
            yield LeftOut(folder, _reason(error))
            continue
        found = [e for e in found if not e.name.startswith(".") and e.name not in _NOT_FOOTAGE]
        yield from (entry for e in found for entry in _entry(e, top))
        waiting += [Path(e.path) for e in reversed(found) if e.is_dir(follow_symlinks=False)]


def _entry(entry: "os.DirEntry[str]", top: Path) -> Iterator[Found | LeftOut]:
    path = Path(entry.path)
    if entry.is_symlink():
        yield from _link(path, top)
    elif not entry.is_dir(follow_symlinks=False) and _is_footage(path):
        yield _looked_at(path)


def _link(path: Path, top: Path) -> Iterator[LeftOut]:
    """Inside, what it leads to is found by itself; outside, it is none of this folder's business."""
    target = _real(path)
    if not target.is_relative_to(top) and (_is_footage(path) or target.is_dir()):
        yield LeftOut(path, "a link that leads out of the folder: name it on the command line to take it in")
    elif not target.exists() and _is_footage(path):
        yield LeftOut(path, "a link that leads nowhere")


def _is_footage(path: Path) -> bool:
    return path.suffix.lower() in VIDEO + AUDIO


def _looked_at(path: Path) -> Found | LeftOut:
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            return LeftOut(path, f"not a regular file but {_kind(mode)}")
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # a FIFO put there meanwhile cannot hang us
        size = os.fstat(file).st_size
        os.close(file)
    except OSError as error:
        return LeftOut(path, _reason(error))
    return Found(path, size) if size else LeftOut(path, "the file is empty")


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "something else"


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file or folder"
    if isinstance(error, PermissionError):
        return "it may not be read by this user"
    return f"it cannot be read: {getattr(error, 'strerror', None) or error}"
