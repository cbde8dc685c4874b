"""Files and folders as sources: looked at, never opened as media, and never left by a link."""

import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from rushes.domain.errors import NotAllowed, NotFound, Refused, SourceMissing
from rushes.domain.video import Fingerprint
from rushes.sources.port import MISSING, FoundFile, SkippedFile

VIDEO = (".3g2", ".3gp", ".avi", ".divx", ".dv", ".f4v", ".flv", ".m2ts", ".m2v", ".m4v", ".mkv", ".mov", ".mp4",
         ".mpeg", ".mpg", ".mts", ".mxf", ".ogm", ".ogv", ".qt", ".ts", ".vob", ".webm", ".wmv")  # fmt: skip
AUDIO = (".aac", ".aif", ".aiff", ".flac", ".m4a", ".m4b", ".mka", ".mp3", ".oga", ".ogg", ".opus", ".wav", ".wma")
PARTIAL = (".part", ".partial", ".crdownload", ".download", ".tmp", ".!qb", ".opdownload")
ENTRIES, DEPTH = 1_000_000, 40  # files and folders that are looked at below one place, and folders inside each other
_NO_DISKS = frozenset({"/proc", "/sys", "/dev", "/run"})  # what a kernel shows as files
_NOT_FOOTAGE = frozenset({"$RECYCLE.BIN", "System Volume Information", "lost+found", "@eaDir", "#recycle"})


@dataclass(frozen=True, slots=True)
class Folder:
    """A file as it is named, or a folder with everything below that looks like footage.

    A link that is named itself is resolved; a link inside a folder is not followed out of it.
    """

    path: Path

    @property
    def grows(self) -> bool:
        return True

    def scan(self) -> Iterator[FoundFile | SkippedFile]:
        try:
            real = _real(self.path)
            mode = real.stat().st_mode
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            yield _unseen(self.path, error)
            return
        if stat.S_ISDIR(mode):
            yield from _folder(real)
        else:
            yield _check(real)

    def at(self, _bucket: str, _key: str) -> Iterator[FoundFile]:
        """No bucket tells of a folder."""
        return iter(())


def below(original: Fingerprint, folder: Path) -> Fingerprint:
    """A fingerprint whose path is relative to a folder if it lies there, so that both can be moved together."""
    path, top = Path(original.path), _real(folder)
    return replace(original, path=str(path.relative_to(top))) if path.is_relative_to(top) else original


def fingerprint(path: Path) -> Fingerprint:
    """The cheap identity of a file.

    Raises:
        SourceMissing: it is not there, or not a regular file.
    """
    real = _real(path)
    try:
        found = real.lstat()
    except (OSError, ValueError) as error:
        raise SourceMissing(f"{path} is missing") from error
    if not stat.S_ISREG(found.st_mode):
        raise SourceMissing(f"{path} is not a regular file")
    return _fingerprint(real, found)


def _fingerprint(path: Path, found: os.stat_result) -> Fingerprint:
    return Fingerprint(str(path), found.st_size, found.st_mtime_ns, found.st_ino)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _folder(top: Path) -> Iterator[FoundFile | SkippedFile]:
    """What is below, and at the end what was passed over."""
    others: Counter[str] = Counter()
    films = 0
    for entry in _below(top, others):
        films += 1
        yield entry
    if not films:
        yield SkippedFile(str(top), "no videos in it" + (f", only {_counted(others)}" if others else ""))
    elif others:
        yield SkippedFile(str(top), f"not video: {_counted(others)}", fault=False)


def _below(top: Path, others: Counter[str]) -> Iterator[FoundFile | SkippedFile]:
    waiting, looked = [(top, 0)], 0
    while waiting:
        folder, depth = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = sorted(islice(entries, ENTRIES + 1 - looked), key=lambda e: e.name)
        except OSError as error:
            yield _unseen(folder, error) if folder == top else SkippedFile(str(folder), _reason(error))
            continue
        looked += len(found)
        if looked > ENTRIES:
            yield SkippedFile(str(folder), f"more than {ENTRIES:,} files below {top}: name its folders one by one")
            return
        found = [e for e in found if not e.name.startswith(".") and e.name not in _NOT_FOOTAGE]
        yield from (entry for e in found for entry in _entry(e, top, others))
        inner = [Path(e.path) for e in reversed(found) if _is_folder(e)]
        if inner and depth == DEPTH:
            yield SkippedFile(str(folder), f"folders in it are deeper than {DEPTH} below {top}: name them")
        else:
            waiting += [(path, depth + 1) for path in inner if str(path) not in _NO_DISKS]


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _entry(entry: "os.DirEntry[str]", top: Path, others: Counter[str]) -> Iterator[FoundFile | SkippedFile]:
    try:
        yield from _look(entry, top, others)
    except OSError as error:
        yield SkippedFile(entry.path, _reason(error))


def _look(entry: "os.DirEntry[str]", top: Path, others: Counter[str]) -> Iterator[FoundFile | SkippedFile]:
    path = Path(entry.path)
    if entry.is_symlink():
        yield from _link(path, top)
    elif entry.is_dir(follow_symlinks=False):
        return
    elif path.suffix.lower() in PARTIAL:
        yield SkippedFile(str(path), "it is still being written", fault=False)
    elif _is_footage(path):
        yield _check(path)
    else:
        others[path.suffix.lower() or path.name] += 1


def _counted(others: Counter[str]) -> str:
    some = [f"{n} {ending}" for ending, n in others.most_common(5)]
    return ", ".join(some) + (", ..." if len(others) > len(some) else "")


def _link(path: Path, top: Path) -> Iterator[SkippedFile]:
    """Inside, what it leads to is found by itself; outside, it is none of this folder's business."""
    target = _real(path)
    if not target.is_relative_to(top) and (_is_footage(path) or target.is_dir()):
        yield SkippedFile(str(path), "a link that leads out of the folder: name it on the command line to add it")
    elif not target.exists() and _is_footage(path):
        yield SkippedFile(str(path), "a broken link")


def _is_footage(path: Path) -> bool:
    return path.suffix.lower() in VIDEO + AUDIO


def _check(path: Path) -> FoundFile | SkippedFile:
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            return SkippedFile(str(path), f"not a regular file but {_kind(mode)}")
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # a FIFO put there meanwhile cannot hang us
        found = os.fstat(file)
        os.close(file)
    except OSError as error:
        return SkippedFile(str(path), _reason(error))
    return FoundFile(_fingerprint(path, found)) if found.st_size else SkippedFile(str(path), "the file is empty")


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    return kinds.get(stat.S_IFMT(mode), "something else")


def _unseen(path: Path, error: OSError | ValueError) -> SkippedFile:
    """The path itself cannot be read."""
    reason = _reason(error)
    told = f"{path}: {reason}"
    if isinstance(error, PermissionError):
        cause: Refused = NotAllowed(told, "Give this user read permission.")
    else:
        kind = NotFound if reason == MISSING else Refused
        cause = kind(told, "Name files or folders with videos, or s3://bucket/prefix.")
    return SkippedFile(str(path), reason, cause=cause)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return MISSING
    if isinstance(error, PermissionError):
        return "this user may not read it"
    return f"it cannot be read: {getattr(error, 'strerror', None) or error}"
