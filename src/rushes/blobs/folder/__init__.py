"""Blobs in a folder: temp file, fsync, link, fsync of the folder, so that stored files survive a power cut.

The folder belongs to the store alone. Names with a leading dot are its own; no symlink in it is ever followed.
"""

import contextlib
import errno
import io
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from rushes.blobs.folder.files import Temp, age_of, copied, look, new_temp, placed, put_back, reader, sha256_of
from rushes.blobs.key_rules import checked_blob_key, checked_key, stored_key
from rushes.blobs.local_disk import TEMP
from rushes.blobs.port import Blob, BlobStat, ByteRange
from rushes.domain.errors import DamagedBlob, NoRoom, Refused, StoreAway
from rushes.files import DISK_FULL, NO_LINKS, PRIVATE_FOLDER, READ, link_once, make_private, sync
from rushes.telemetry import effect

_QUARANTINE = ".quarantine"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderBlobs:
    """Files below one folder, named by their keys."""

    def __init__(self, root: Path) -> None:
        with _translated(f"opening the blob store {root}"):
            make_private(root)
            self.folder = root.resolve()
        self.root = str(self.folder)
        self._synced: set[str] = set()  # folders whose entry in their parent is known to be on disk

    def put(self, owner: str, source: Path | bytes) -> Blob:
        checked_blob_key(owner, "0" * 64)
        with reader(source) as file, _translated("storing a blob"), self._temp(file) as temp:
            key = checked_blob_key(owner, temp.sha256)
            with effect("blob"), self._folder(_parent(key), make=True) as folder:
                while not placed(temp, folder):
                    pass  # gc took an old one away under our hands: once is rare
                sync(folder)  # also when it was there: its writer may not have come this far
            return Blob(temp.sha256, temp.size)

    def stat(self, owner: str, sha256: str) -> BlobStat | None:
        with _translated("checking a blob"), self._maybe(checked_blob_key(owner, sha256)) as folder:
            found = None if folder is None else look(folder, sha256)
            return None if found is None else BlobStat(found.st_size, age_of(found))

    def open(self, owner: str, sha256: str) -> BinaryIO:
        file = self._open(checked_blob_key(owner, sha256))
        if file is None:
            raise DamagedBlob(f"blob {sha256[:12]} is missing")
        return file

    def local(self, owner: str, sha256: str) -> Path:
        self.open(owner, sha256).close()
        return self.folder / checked_blob_key(owner, sha256)

    def verify(self, owner: str, sha256: str, *, quarantine: bool = False) -> bool:
        key = checked_blob_key(owner, sha256)
        if self._asked(key, lambda file: sha256_of(file) == sha256):
            return True
        if quarantine:
            with effect("drop"):
                self._take(key, lambda file: sha256_of(file) != sha256, kept=f"{_QUARANTINE}/{owner}")
            return self.verify(owner, sha256)
        return False

    def create(self, key: str, data: bytes) -> bool:
        name = checked_key(key).rpartition("/")[2]
        with (
            _translated(f"creating {key}"),
            self._temp(io.BytesIO(data)) as temp,
            effect("manifest"),
            self._folder(_parent(key), make=True) as folder,
        ):
            created = link_once(temp.name, name, temp.folder, folder)
            sync(folder)  # the loser goes on with the winner's document: it must be on disk as well
        return created

    def read(self, key: str, start: int = 0, end: int | None = None) -> ByteRange | None:
        file = self._open(checked_key(key))
        if file is None:
            return None
        with _translated(f"reading {key}"), file:
            found = os.fstat(file.fileno())
            file.seek(start)
            data = file.read() if end is None else file.read(max(0, end - start))
        return ByteRange(data, found.st_size, f"{found.st_size:x}-{found.st_mtime_ns:x}-{found.st_ino:x}")

    def delete(self, key: str, was: bytes | None = None, older: float = 0.0) -> bool:
        def may_go(file: BinaryIO) -> bool:
            is_old = not older or age_of(os.fstat(file.fileno())) >= older
            return is_old and (was is None or file.read() == was)

        with effect("drop"):
            if was is None and not older:
                return self._unlink(stored_key(key))
            return self._take(stored_key(key), may_go)

    def keys(self, prefix: str) -> Iterator[str]:
        with _translated("listing keys"):
            yield from self._below("", prefix)

    def publish(self, name: str, owner: str, sha256: str) -> None:
        last = checked_key(name).rpartition("/")[2]
        with effect("publish"), _translated(f"publishing {name}"), self._folder(_parent(name), make=True) as folder:
            for _ in range(5):  # a tidy may take a fresh link away: once is rare, five times does not happen
                with self._linked(owner, sha256) as temp, contextlib.suppress(FileNotFoundError):
                    os.rename(temp.name, last, src_dir_fd=temp.folder, dst_dir_fd=folder)
                    return sync(folder)
        raise StoreAway(f"publishing {name}: its temporary file vanished")

    @contextlib.contextmanager
    def _folder(self, path: str, *, make: bool = False) -> Iterator[int]:
        with contextlib.ExitStack() as held:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
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
                os.mkdir(part, PRIVATE_FOLDER, dir_fd=parent)
                os.chmod(part, PRIVATE_FOLDER, dir_fd=parent)
        if path not in self._synced:  # once per process: another may have made it and not synced it yet
            sync(parent)
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
                file = os.open(key.rpartition("/")[2], READ, dir_fd=folder)
            except FileNotFoundError:
                return None
            if not stat.S_ISREG(os.fstat(file).st_mode):
                os.close(file)
                return None
            return os.fdopen(file, "rb")

    def _unlink(self, key: str) -> bool:
        with _translated(f"deleting {key}"), self._maybe(key) as folder:
            if folder is None:
                return False
            with contextlib.suppress(FileNotFoundError):
                os.unlink(key.rpartition("/")[2], dir_fd=folder)
                sync(folder)
                return True
        return False

    def _take(self, key: str, may: Callable[[BinaryIO], bool], kept: str = "") -> bool:
        """Delete a file if it may go, or keep it in another folder; whether it went.

        It is looked at again where nobody else finds it: what came between the look and the deed is put back.
        """
        name, aside = key.rpartition("/")[2], kept or _QUARANTINE
        away = f"{name}.{secrets.token_hex(4)}"
        if not self._asked(key, may):
            return False
        with (
            _translated(f"removing {key}"),
            self._folder(_parent(key)) as folder,
            self._folder(aside, make=True) as there,
            contextlib.suppress(FileNotFoundError),
        ):
            os.rename(name, away, src_dir_fd=folder, dst_dir_fd=there)
            goes = self._asked(f"{aside}/{away}", may)
            if not goes:
                put_back(Temp(there, away), folder, name)
            elif not kept:
                os.unlink(away, dir_fd=there)
            sync(there)
            sync(folder)
            return goes
        return False

    def _asked(self, key: str, may: Callable[[BinaryIO], bool]) -> bool:
        file = self._open(key)
        if file is None:
            return False
        with _translated(f"reading {key}"), file:
            return may(file)

    @contextlib.contextmanager
    def _temp(self, source: BinaryIO) -> Iterator[Temp]:
        with self._folder(TEMP, make=True) as temps:
            name, file = new_temp(temps)
            try:
                sha256, size = copied(source, file)
                sync(file)
                yield Temp(temps, name, sha256, size)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=temps)
                os.close(file)

    @contextlib.contextmanager
    def _linked(self, owner: str, sha256: str) -> Iterator[Temp]:
        """A temporary second name of a blob, or a copy where links are not possible."""
        with self._folder(TEMP, make=True) as temps, self.open(owner, sha256) as blob:
            temp = Temp(temps, secrets.token_hex(12), sha256, os.fstat(blob.fileno()).st_size)
            if not self._link_again(owner, temp):
                with self._temp(blob) as copy:
                    yield copy
                return
            try:
                yield temp
            finally:  # renaming one name of a file onto another name of it does nothing, and leaves both
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temp.name, dir_fd=temps)

    def _link_again(self, owner: str, temp: Temp) -> bool:
        with self._folder(_parent(checked_blob_key(owner, temp.sha256))) as folder:
            try:
                os.link(temp.sha256, temp.name, src_dir_fd=folder, dst_dir_fd=temp.folder, follow_symlinks=False)
            except OSError as error:
                if error.errno not in NO_LINKS:
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


@contextlib.contextmanager
def _translated(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL:
            raise NoRoom(f"{doing}: the disk is full") from error
        if error.errno in {errno.ENOTDIR, errno.ELOOP, errno.EISDIR}:
            raise Refused(f"{doing}: there is a link or a file where a folder is expected") from error
        raise StoreAway(f"{doing}: {error.strerror or error}") from error
