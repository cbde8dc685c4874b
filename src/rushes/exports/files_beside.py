"""Files next to a video or at a given path; files that rushes did not write are never overwritten."""

import contextlib
import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from rushes.domain.errors import NoRoom, Refused
from rushes.files import DISK_FULL, NEW, NO_LINKS, READ, create_locked, remove_abandoned, sync, sync_path, write_all
from rushes.telemetry import effect

_EMPTY = hashlib.sha256(b"").hexdigest()  # a name that was taken by a writer who was killed before it could fill it


def check_output_path(path: Path, endings: Collection[str]) -> None:
    """Refuse a place where the file cannot be, or a name that promises something else.

    Raises:
        Refused: says why.
    """
    if path.exists():
        raise Refused(f"{path} already exists", "Choose another name, or remove it first.")
    if not path.parent.is_dir():
        raise Refused(f"the folder {path.parent} does not exist", f"Create it first: mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise Refused(f"{path.parent} cannot be written by this user", "Choose another folder.")
    if path.suffix.lower() not in endings:
        better = f"{path.stem}{next(iter(endings))}"
        raise Refused(f"{path.name}: the name must end in {' or '.join(endings)}", f"For example: {better}")


def path_beside(film: Path, language: str, kind: str) -> Path:
    """`<stem>.<language>.<kind>` in the film's folder: what Jellyfin, Kodi, Plex and VLC look for."""
    tag = re.sub(r"[^A-Za-z0-9-]", "", language)
    return film.with_name(".".join(filter(None, (film.stem, tag, kind))))


def write_beside(path: Path, data: bytes, was_ours: Callable[[str], bool]) -> bool:
    """Write a file whole or not at all; False if it is there with these very bytes.

    `was_ours` says whether a content (by its sha256) was written by us: only that is ever replaced.
    Raises:
        Refused: something is there that we did not write, or the folder cannot be written.
        NoRoom: the disk is full.
    """
    with _translate_errors(path):
        there = _content(path)
        if there == hashlib.sha256(data).hexdigest():
            return False
        if there not in {None, _EMPTY} and not was_ours(str(there)):
            raise Refused(f"{path.name} already exists and was not written by rushes", "Move it, or use --no-beside.")
        with _temporary(path, data) as temp, effect("publish"):
            if there is None:
                _link(temp, path)
            else:
                temp.replace(path)
            sync_path(path.parent)
    return True


def _content(path: Path) -> str | None:
    """The sha256 of what is there, None if nothing is."""
    try:
        file = os.open(path, READ)
    except FileNotFoundError:
        return None
    with os.fdopen(file, "rb") as reader:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise Refused(f"{path.name} already exists and is not a file")
        return hashlib.file_digest(reader, "sha256").hexdigest()


@contextlib.contextmanager
def _temporary(path: Path, data: bytes) -> Iterator[Path]:
    """One hidden name per target, so that what a killed process left is taken over by the next."""
    temp = path.with_name(f".rushes-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}")
    file = _create_locked(temp)
    try:
        write_all(file, data)
        sync(file)
        yield temp
    finally:
        with contextlib.suppress(FileNotFoundError):
            if temp.stat().st_ino == os.fstat(file).st_ino:  # else it has its name, and this one may be another's
                temp.unlink()
        os.close(file)


def _create_locked(temp: Path) -> int:
    """A new file under that name, locked: whoever finds it unlocked knows that its writer is dead."""
    remove_abandoned(temp)
    with contextlib.suppress(FileExistsError):
        file = create_locked(temp)
        if file is not None:
            return file
    raise Refused("another process is writing the same file")


def _link(temp: Path, path: Path) -> None:
    """Give the file its name unless somebody has taken it meanwhile."""
    try:
        os.link(temp, path, follow_symlinks=False)
    except FileExistsError:
        raise Refused(f"{path.name} was just written by another process") from None
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.close(os.open(path, NEW, 0o666))  # no links on this file system: take the name, then fill it
        temp.replace(path)


@contextlib.contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL:
            raise NoRoom(f"{path.name} cannot be written: the disk is full") from error
        if error.errno == errno.ELOOP:
            raise Refused(f"{path.name} is a link, which is not followed") from error
        raise Refused(f"{path.name} cannot be written: {error.strerror}", "Use --no-beside.") from error
