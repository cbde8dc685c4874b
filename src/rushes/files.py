"""Atomic writes, names that are given once, and locks between processes.

A lock lasts as long as its file is open: the kernel releases it when the process ends, for whatever reason.
"""

import contextlib
import errno
import fcntl
import glob
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from rushes.domain.errors import NoRoom, Refused, RushesError

NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOSYS}  # exFAT, another user's file
PRIVATE_FOLDER, PRIVATE_FILE, PRIVATE_BLOB = 0o700, 0o600, 0o400  # of a home: nobody else can look into it
DISK_FULL = {errno.ENOSPC, errno.EDQUOT}
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO must not hang the reader
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC  # to what lies in a folder

_PAUSE = 0.02  # seconds between two tries to get a lock
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def local_path(text: str | Path, hint: str = "Give a path on this machine.") -> Path:
    """The path that a text is; an address such as s3://bucket is none, and never becomes a folder of that name.

    Raises:
        Refused: it has a scheme.
    """
    if _SCHEME.match(str(text)):
        raise Refused(f"{text} is not a path of this machine", hint)
    return Path(text)


def open_without_links(top: Path, path: str) -> int:
    """A descriptor to read what lies at a path below a folder; no part of the path may be a link, or lead upwards.

    Only `top` itself may be reached through links; an absolute path has none at all.
    """
    parts = (Path(os.path.realpath(top)) / path).parts
    if "\0" in path or ".." in parts or not Path(path).parts:
        raise FileNotFoundError(errno.ENOENT, "it is not a path below this folder")
    folder = os.open(parts[0], _PASS)
    try:
        for part in parts[1:-1]:
            inner = os.open(part, _PASS | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], READ, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            error.strerror = "it can only be reached through a link, which is not followed"
        raise
    finally:
        os.close(folder)


def sync(file: int | IO[bytes] | IO[str]) -> None:
    """What was written to an open file, or the names in an open folder, survive a power cut."""
    if not isinstance(file, int):
        file.flush()
    os.fsync(file)


def sync_path(path: Path) -> None:
    """The same for a file or a folder that is not open."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextlib.contextmanager
def replacing(target: Path, commit: AbstractContextManager[object] | None = None, mode: int = 0o666) -> Iterator[Path]:
    """An empty file to write to, which becomes the target in one step at the end, and is gone if that is not reached.

    It is synced before it has its name, and its name after; `commit` is held while it gets it. Of two that write one
    target at the same time each has its own, and the last one stays. What a killed process left goes with the next.
    """
    name = f".{target.name[:50]}"  # characters, of which a name may have no more than 255 bytes
    for left in target.parent.glob(f"{glob.escape(name)}.*.part"):
        with contextlib.suppress(OSError):  # another user's
            remove_abandoned(left)
    part, file = _new_part(target.parent, name, mode)
    try:
        yield part
        sync_path(part)
        with commit or contextlib.nullcontext():
            part.replace(target)
        sync_path(target.parent)
    finally:
        part.unlink(missing_ok=True)
        os.close(file)


def _new_part(folder: Path, name: str, mode: int) -> tuple[Path, int]:
    """A new file that we hold as long as it is open."""
    while True:
        part = folder / f"{name}.{secrets.token_hex(8)}.part"
        if (file := create_locked(part, mode)) is not None:
            return part, file


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can enter, whatever the umask; one that is there stays as it is."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(PRIVATE_FOLDER)
        folder.chmod(PRIVATE_FOLDER)


def open_private(file: Path, flags: int) -> int:
    """Open a file, which only its owner can read if it is new, whatever the umask."""
    flags |= os.O_CREAT | os.O_CLOEXEC
    try:
        return _new(file, flags | os.O_EXCL, PRIVATE_FILE)
    except FileExistsError:
        return os.open(file, flags, PRIVATE_FILE)


def _new(file: str | Path, flags: int, mode: int, folder: int | None = None) -> int:
    """A new file; one for its owner alone has just that mode, others as the umask wants."""
    opened = os.open(file, flags, mode, dir_fd=folder)
    if not mode & 0o077:
        os.fchmod(opened, mode)
    return opened


def write_whole(target: Path, data: bytes, mode: int = PRIVATE_FILE) -> None:
    """Write a file in one step."""
    with replacing(target, mode=mode) as part, part.open("wb") as file:
        file.write(data)


def copy_whole(source: Path, target: Path, commit: AbstractContextManager[object] | None = None) -> None:
    """Copy a file in one step, as `replacing`.

    Raises:
        NoRoom: it does not fit.
    """
    try:
        with source.open("rb") as given, replacing(target, commit) as part, part.open("wb") as out:
            shutil.copyfileobj(given, out)
            out.flush()
    except OSError as error:
        if error.errno in DISK_FULL:
            raise NoRoom(f"there is no disk space for {target.name}") from error
        raise


def copy_new(source: Path, target: Path) -> bool:
    """Copy a file in one step to a name that nothing has yet; False if something has it.

    No part of the path to the target may be a link.

    Raises:
        OSError: its folder cannot be written, or only be reached through a link.
    """
    folder = open_without_links(target.parent, str(target.parent))
    part = f".{target.name[:100]}.{secrets.token_hex(8)}.part"
    try:
        with source.open("rb") as given, os.fdopen(_new(part, NEW, 0o666, folder), "wb") as out:
            shutil.copyfileobj(given, out, 1 << 20)
            sync(out)
        return link_once(part, target.name, folder, folder)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)
        sync(folder)
        os.close(folder)


def copy_private(source: Path, target: Path, check: Callable[[Path], None] = lambda _part: None) -> None:
    """Copy a file in one step for its owner alone; a link is not followed, and `check` sees the copy first."""
    with os.fdopen(os.open(source, READ), "rb") as given, replacing(target, mode=PRIVATE_FILE) as part:
        with part.open("wb") as out:
            shutil.copyfileobj(given, out)
        check(part)


def write_all(file: int, data: bytes | memoryview) -> None:
    """Write all of it to an open file."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def link_once(old: str, new: str, from_folder: int, to_folder: int) -> bool:
    """Give a file of one open folder its name in another unless something has it already: one winner of any number.

    Where there are no links, everybody takes the folder's lock first, and the old name is gone.
    """
    try:
        os.link(old, new, src_dir_fd=from_folder, dst_dir_fd=to_folder, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        return _rename_once(old, new, from_folder, to_folder)
    return True


def _rename_once(old: str, new: str, from_folder: int, to_folder: int) -> bool:
    fcntl.flock(to_folder, fcntl.LOCK_EX)
    try:
        os.stat(new, dir_fd=to_folder, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=from_folder, dst_dir_fd=to_folder)
        return True
    return False


def folder_identity(path: Path) -> tuple[int, int] | None:
    """What tells a folder from another of the same name; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def wait_for_lock(file: int | IO[bytes] | IO[str]) -> None:
    """Wait until this process alone holds an open file."""
    fcntl.flock(file, fcntl.LOCK_EX)


def try_lock(file: int | IO[bytes] | IO[str], patience: float = 0.0) -> bool:
    """The same without waiting, or for at most that many seconds; whether we hold it."""
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_PAUSE)
        else:
            return True


@contextlib.contextmanager
def locked(path: Path, patience: float | None = None) -> Iterator[bool]:
    """Hold a lock file, waiting without limit or for so many seconds; False if another process still has it."""
    file = open_private(path, os.O_RDWR)
    try:
        if patience is None:
            wait_for_lock(file)
            yield True
        else:
            yield try_lock(file, patience)
    finally:
        os.close(file)


@contextlib.contextmanager
def locked_or_refused(path: Path, refusal: RushesError, patience: float = 0.0) -> Iterator[None]:
    """Hold a lock file, or raise if another process has it for so many seconds; it is let go with the process."""
    with locked(path, patience) as mine:
        if not mine:
            raise refusal
        yield


def create_locked(name: str | Path, mode: int = 0o666, folder: int | None = None) -> int | None:
    """A new file that we hold: whoever can lock it knows that its writer is gone. None if one took it for such."""
    file = _new(name, NEW, mode, folder)
    wait_for_lock(file)
    if os.fstat(file).st_nlink:
        return file
    os.close(file)
    return None


def remove_abandoned(name: str | Path, folder: int | None = None) -> bool:
    """Delete a file whose writer is gone; False if it lives, or another process was faster."""
    with contextlib.suppress(FileNotFoundError):
        file = os.open(name, READ, dir_fd=folder)
        try:
            if try_lock(file):
                os.unlink(name, dir_fd=folder)
                return True
        finally:
            os.close(file)
    return False
