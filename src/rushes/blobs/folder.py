"""Blobs in a folder: temp file, fsync, link, fsync of the folder, so that what was answered survives a power cut.

The folder belongs to the store alone. Names with a leading dot are its own; no symlink in it is ever followed.
"""

import contextlib
import errno
import fcntl
import hashlib
import io
import os
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rushes.blobs.names import blob_place, checked_key
from rushes.blobs.port import Blob, Part
from rushes.domain.errors import DamagedBlob, NoRoom, Refused, StoreAway
from rushes.telemetry import effect

_TEMP = ".temp"
_ASIDE = ".quarantine"
_PIECE = 1 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO must not hang the reader
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOSYS}  # exFAT, another user's file


@dataclass(frozen=True, slots=True)
class _Temp:
    """A complete, synced file that nobody sees yet."""

    folder: int
    name: str
    sha256: str
    size: int


class FolderBlobs:
    """Files below one folder, named by their keys."""

    def __init__(self, root: Path) -> None:
        with _translated(f"opening the blob store {root}"):
            root.mkdir(parents=True, exist_ok=True)
            self._root = root.resolve()
        self._synced: set[str] = set()  # folders whose entry in their parent is known to be on disk

    def put(self, owner: str, source: Path | bytes) -> Blob:
        """As the port says."""
        blob_place(owner, "0" * 64)
        with _reader(source) as file, _translated("storing a blob"), self._temp(file) as temp:
            key = blob_place(owner, temp.sha256)
            with effect("blob"), self._folder(_parent(key), make=True) as folder:
                if not _link(temp, folder, temp.sha256) and _size(folder, temp.sha256) != temp.size:
                    os.rename(temp.name, temp.sha256, src_dir_fd=temp.folder, dst_dir_fd=folder)
                os.utime(temp.sha256, dir_fd=folder, follow_symlinks=False)  # young again: gc leaves it alone
                os.fsync(folder)  # also when it was there: its writer may not have come this far
            return Blob(temp.sha256, temp.size)

    def size(self, owner: str, sha256: str) -> int | None:
        """As the port says."""
        with _translated("looking at a blob"), self._maybe(blob_place(owner, sha256)) as folder:
            return None if folder is None else _size(folder, sha256)

    def age(self, owner: str, sha256: str) -> float | None:
        """As the port says."""
        with _translated("looking at a blob"), self._maybe(blob_place(owner, sha256)) as folder:
            found = None if folder is None else _stat(folder, sha256)
            return None if found is None else max(0.0, time.time() - found.st_mtime)

    def open(self, owner: str, sha256: str) -> BinaryIO:
        """As the port says."""
        file = self._open(blob_place(owner, sha256))
        if file is None:
            raise DamagedBlob(f"blob {sha256[:12]} is not there")
        return file

    def local(self, owner: str, sha256: str) -> Path:
        """As the port says."""
        self.open(owner, sha256).close()
        return self._root / blob_place(owner, sha256)

    def sound(self, owner: str, sha256: str) -> bool:
        """As the port says."""
        file = self._open(blob_place(owner, sha256))
        if file is None:
            return False
        digest = hashlib.sha256()
        with _translated("reading a blob"), file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        return digest.hexdigest() == sha256

    def quarantine(self, owner: str, sha256: str) -> None:
        """As the port says."""
        with (
            effect("drop"),
            _translated("setting a blob aside"),
            self._maybe(blob_place(owner, sha256)) as folder,
            self._folder(f"{_ASIDE}/{owner}", make=True) as aside,
        ):
            if folder is None:
                return
            with contextlib.suppress(FileNotFoundError):
                os.rename(sha256, f"{sha256}.{secrets.token_hex(4)}", src_dir_fd=folder, dst_dir_fd=aside)
            os.fsync(aside)
            os.fsync(folder)

    def drop(self, owner: str, sha256: str) -> None:
        """As the port says."""
        with effect("drop"):
            self._unlink(blob_place(owner, sha256))

    def create(self, key: str, data: bytes) -> bool:
        """As the port says."""
        name = checked_key(key).rpartition("/")[2]
        with (
            _translated(f"creating {key}"),
            self._temp(io.BytesIO(data)) as temp,
            effect("manifest"),
            self._folder(_parent(key), make=True) as folder,
        ):
            created = _link(temp, folder, name)
            os.fsync(folder)  # the loser goes on with the winner's document: it must be on disk as well
        return created

    def read(self, key: str) -> bytes | None:
        """As the port says."""
        file = self._open(checked_key(key))
        if file is None:
            return None
        with _translated(f"reading {key}"), file:
            return file.read()

    def part(self, key: str, start: int, end: int) -> Part | None:
        """As the port says."""
        file = self._open(checked_key(key))
        if file is None:
            return None
        with _translated(f"reading {key}"), file:
            found = os.fstat(file.fileno())
            file.seek(start)
            data = file.read(max(0, end - start))
        return Part(data, found.st_size, f"{found.st_size:x}-{found.st_mtime_ns:x}-{found.st_ino:x}")

    def remove(self, key: str) -> None:
        """As the port says."""
        with effect("drop"):
            self._unlink(checked_key(key))

    def keys(self, prefix: str) -> Iterator[str]:
        """As the port says."""
        with _translated("listing keys"):
            yield from self._below("", prefix)

    def publish(self, name: str, owner: str, sha256: str) -> None:
        """As the port says."""
        last = checked_key(name).rpartition("/")[2]
        with effect("publish"), _translated(f"publishing {name}"), self._folder(_parent(name), make=True) as folder:
            for _ in range(5):  # a tidy may take a fresh link away: once is rare, five times does not happen
                with self._linked(owner, sha256) as temp, contextlib.suppress(FileNotFoundError):
                    os.rename(temp.name, last, src_dir_fd=temp.folder, dst_dir_fd=folder)
                    return os.fsync(folder)
        raise StoreAway(f"publishing {name}: its temporary file vanished")

    def address(self, name: str) -> str:
        """As the port says."""
        return str(self._root / checked_key(name))

    def room(self) -> int | None:
        """As the port says."""
        with _translated("measuring free space"):
            disk = os.statvfs(self._root)
        return disk.f_bavail * disk.f_frsize

    def tidy(self) -> int:
        """Delete temporary files of processes that are gone (a live one holds a lock on its own); how many."""
        gone = 0
        with _translated("tidying"), self._folder(_TEMP, make=True) as temps, os.scandir(temps) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError, BlockingIOError):
                    gone += _abandoned(temps, entry.name)
        return gone

    @contextlib.contextmanager
    def _folder(self, path: str, *, make: bool = False) -> Iterator[int]:
        with contextlib.ExitStack() as held:
            folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            held.callback(os.close, folder)
            walked = ""
            for part in filter(None, path.split("/")):
                walked = f"{walked}/{part}"
                if make:
                    self._make(folder, part, walked)
                folder = os.open(part, _FOLDER, dir_fd=folder)
                held.callback(os.close, folder)
            yield folder

    def _make(self, parent: int, part: str, path: str) -> None:
        try:
            os.stat(part, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            self._synced.discard(path)
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=parent)
        if path not in self._synced:  # once per process: another may have made it and not synced it yet
            os.fsync(parent)
            self._synced.add(path)

    @contextlib.contextmanager
    def _maybe(self, key: str) -> Iterator[int | None]:
        with contextlib.ExitStack() as held:
            folder = None
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                folder = held.enter_context(self._folder(_parent(key)))
            yield folder

    def _open(self, key: str) -> BinaryIO | None:
        with _translated(f"opening {key}"), self._maybe(key) as folder:
            if folder is None:
                return None
            try:
                file = os.open(key.rpartition("/")[2], _READ, dir_fd=folder)
            except FileNotFoundError:
                return None
            if not stat.S_ISREG(os.fstat(file).st_mode):
                os.close(file)
                return None
            return os.fdopen(file, "rb")

    def _unlink(self, key: str) -> None:
        with _translated(f"deleting {key}"), self._maybe(key) as folder:
            if folder is None:
                return
            with contextlib.suppress(FileNotFoundError):
                os.unlink(key.rpartition("/")[2], dir_fd=folder)
                os.fsync(folder)

    @contextlib.contextmanager
    def _temp(self, source: BinaryIO) -> Iterator[_Temp]:
        with self._folder(_TEMP, make=True) as temps:
            name, file = _new_temp(temps)
            try:
                sha256, size = _copied(source, file)
                os.fsync(file)
                yield _Temp(temps, name, sha256, size)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=temps)
                os.close(file)

    @contextlib.contextmanager
    def _linked(self, owner: str, sha256: str) -> Iterator[_Temp]:
        """A temporary second name of a blob, or a copy where links are not possible."""
        with self._folder(_TEMP, make=True) as temps, self.open(owner, sha256) as blob:
            temp = _Temp(temps, secrets.token_hex(12), sha256, os.fstat(blob.fileno()).st_size)
            if not self._link_again(owner, temp):
                with self._temp(blob) as copy:
                    yield copy
                return
            try:
                yield temp
            finally:  # renaming one name of a file onto another name of it does nothing, and leaves both
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temp.name, dir_fd=temps)

    def _link_again(self, owner: str, temp: _Temp) -> bool:
        with self._folder(_parent(blob_place(owner, temp.sha256))) as folder:
            try:
                os.link(temp.sha256, temp.name, src_dir_fd=folder, dst_dir_fd=temp.folder, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                return False
        return True

    def _below(self, path: str, prefix: str) -> Iterator[str]:
        try:
            with self._folder(path) as folder, os.scandir(folder) as entries:
                found = [(e.name + "/" if e.is_dir(follow_symlinks=False) else e.name, e) for e in entries]
                found = [(n, e) for n, e in found if n.endswith("/") or e.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            return
        for name in sorted(n for n, _ in found if not n.startswith(".")):
            key = path + name
            if not name.endswith("/"):
                if key.startswith(prefix):
                    yield key
            elif key.startswith(prefix) or prefix.startswith(key):
                yield from self._below(key, prefix)


def _parent(key: str) -> str:
    return key.rpartition("/")[0]


def _reader(source: Path | bytes) -> BinaryIO:
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def _new_temp(temps: int) -> tuple[str, int]:
    while True:
        name = secrets.token_hex(12)
        file = os.open(name, _NEW, 0o444, dir_fd=temps)  # read only for everybody: published names share its bytes
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:  # else a tidy was between the two calls
            return name, file
        os.close(file)


def _copied(source: BinaryIO, file: int) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    while piece := source.read(_PIECE):
        digest.update(piece)
        size += len(piece)
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(file, rest) :]
    return digest.hexdigest(), size


def _link(temp: _Temp, folder: int, name: str) -> bool:
    """Give a temporary file its name, unless something has it already: one winner among any number."""
    try:
        os.link(temp.name, name, src_dir_fd=temp.folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _renamed_if_new(temp, folder, name)
    return True


def _renamed_if_new(temp: _Temp, folder: int, name: str) -> bool:
    """The same on file systems without links: everybody takes the folder's lock first."""
    fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(temp.name, name, src_dir_fd=temp.folder, dst_dir_fd=folder)
        return True
    return False


def _size(folder: int, name: str) -> int | None:
    found = _stat(folder, name)
    return None if found is None else found.st_size


def _stat(folder: int, name: str) -> os.stat_result | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _abandoned(temps: int, name: str) -> bool:
    file = os.open(name, _READ, dir_fd=temps)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=temps)
    finally:
        os.close(file)
    return True


@contextlib.contextmanager
def _translated(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise NoRoom(f"{doing}: the disk is full") from error
        if error.errno in {errno.ENOTDIR, errno.ELOOP, errno.EISDIR}:
            raise Refused(f"{doing}: a link or a file stands where a folder should be") from error
        raise StoreAway(f"{doing}: {error.strerror or error}") from error
