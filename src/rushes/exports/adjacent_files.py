"""Files beside the film, under names that players read; never overwrites a file of somebody else."""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from rushes.domain.errors import NoRoom, Refused
from rushes.telemetry import effect

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_EMPTY = hashlib.sha256(b"").hexdigest()  # left by a writer that was killed before it wrote
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOSYS}


def adjacent_path(film: Path, language: str, kind: str) -> Path:
    """`<stem>.<language>.<kind>` in the film's folder: what Jellyfin, Kodi, Plex and VLC look for."""
    tag = re.sub(r"[^A-Za-z0-9-]", "", language)
    return film.with_name(".".join(filter(None, (film.stem, tag, kind))))


def write_adjacent(path: Path, data: bytes, was_ours: Callable[[str], bool]) -> bool:
    """Write a file atomically; False if it already has these bytes.

    `was_ours` tells by its sha256 whether we wrote a file: only such a file is replaced.
    Raises:
        Refused: the file is not ours, or the folder cannot be written.
        NoRoom: the disk is full.
    """
    with _translate_errors(path):
        there = _content(path)
        if there == hashlib.sha256(data).hexdigest():
            return False
        if there not in {None, _EMPTY} and not was_ours(str(there)):
            raise Refused(f"{path.name} exists and was not written by rushes", "Move it away, or use --no-beside.")
        with _temporary(path, data) as temp, effect("publish"):
            if there is None:
                _link(temp, path)
            else:
                temp.replace(path)
            _sync_folder(path.parent)
    return True


def _content(path: Path) -> str | None:
    """The sha256 of the file, None if it is missing."""
    try:
        file = os.open(path, _READ)
    except FileNotFoundError:
        return None
    with os.fdopen(file, "rb") as reader:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise Refused(f"{path.name} exists and is not a regular file")
        return hashlib.file_digest(reader, "sha256").hexdigest()


@contextlib.contextmanager
def _temporary(path: Path, data: bytes) -> Iterator[Path]:
    """One hidden name per target, so that the next process takes over what a killed one left."""
    temp = path.with_name(f".rushes-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}")
    file = _create_locked(temp)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
        yield temp
    finally:
        with contextlib.suppress(FileNotFoundError):
            if temp.stat().st_ino == os.fstat(file).st_ino:  # else it was renamed, and this one is of another process
                temp.unlink()
        os.close(file)


def _create_locked(temp: Path) -> int:
    """A new locked file: one that is not locked was left by a dead writer."""
    with contextlib.suppress(FileNotFoundError):
        _remove_abandoned(temp)
    with contextlib.suppress(FileExistsError):
        file = os.open(temp, _NEW, 0o666)
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            return file
        os.close(file)
    raise Refused("another process is writing the same file")


def _remove_abandoned(temp: Path) -> None:
    file = os.open(temp, _READ)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        temp.unlink()
    except BlockingIOError:
        pass  # its writer lives: the exclusive creation that follows fails
    finally:
        os.close(file)


def _link(temp: Path, path: Path) -> None:
    """Give the file its name unless that exists by now."""
    try:
        os.link(temp, path, follow_symlinks=False)
    except FileExistsError:
        raise Refused(f"{path.name} was just written by another program") from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, _NEW, 0o666))  # no hard links here: create it, then replace it
        temp.replace(path)


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextlib.contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise NoRoom(f"{path.name} cannot be written: the disk is full") from error
        if error.errno == errno.ELOOP:
            raise Refused(f"{path.name} is a link: it is not followed") from error
        raise Refused(f"{path.name} cannot be written: {error.strerror}", "Use --no-beside.") from error
