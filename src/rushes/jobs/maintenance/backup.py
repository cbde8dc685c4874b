"""Backup and restore: the ledger's snapshot first, then the results it names.

A folder is a backup only when its last file, the seal, is there. Published names are made again from the manifests.
One caretaker of a home at a time: gc must not clear what a backup is about to copy.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rushes.blobs.documents import read_document
from rushes.blobs.manifests import parse_manifest
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob, NotFound, Refused
from rushes.domain.keys import blob_key, parse_blob_key
from rushes.domain.result import Artifact
from rushes.files import locked_or_refused, replacing, write_whole
from rushes.telemetry import log

SEAL = "backup.json"  # written last: without it a folder is not a backup
FILES = "files"  # the backup's own blob store

OpenBlobs = Callable[[Path], Blobs]


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup holds."""

    files: int
    size: int
    copied: int  # files that were not there from an earlier backup
    damaged: tuple[str, ...] = ()  # left out: blobs whose bytes do not match their names, manifests that are none


def backup(
    home: Path, blobs: Blobs, to: Path, snapshots: Mapping[str, Callable[[Path], None]], folder: OpenBlobs
) -> BackupReport:
    """Copy a home that may be in use; repeated into the same folder it copies only what is new.

    Raises:
        Refused: the folder holds something else.
    """
    if to.exists() and any(to.iterdir()) and not (to / SEAL).exists() and not (to / FILES).is_dir():
        raise Refused(f"{to} is not empty and not a backup", "Choose an empty folder.")
    (to / FILES).mkdir(parents=True, exist_ok=True)
    (to / SEAL).unlink(missing_ok=True)
    for name, snapshot in snapshots.items():
        _replace(to / name, snapshot)
    copied = copy(blobs, folder(to / FILES))
    settings = home / "rushes.toml"
    if settings.is_file():
        _replace(to / settings.name, partial(shutil.copy2, settings))
    seal = {name: _sha256(to / name) for name in (*snapshots, *([settings.name] if settings.is_file() else []))}
    write_whole(to / SEAL, json.dumps(seal).encode())
    return copied


def restore(backup_folder: Path, home: Path, folder: OpenBlobs, blobs_of: OpenBlobs) -> int:
    """Make a home from a backup: its settings, the results, the ledger last. Answers how many files.

    Raises:
        NotFound: the folder is not a complete backup.
        Refused: there is already a home, or the backup is damaged.
    """
    try:
        seal = json.loads((backup_folder / SEAL).read_text())
    except (OSError, ValueError) as e:
        raise NotFound(f"{backup_folder} is not a complete backup", "Run rushes backup again.") from e
    if (home / "ledger.sqlite").exists():
        raise Refused(f"{home} is already a home", "Restore into another folder with --home.")
    for name, sha256 in seal.items():
        if _sha256(backup_folder / name) != sha256:
            raise Refused(f"{name} of this backup is damaged", "Use another backup.")
    for name in seal:  # a log of another database would be replayed
        _unlink(home, f"{name}-wal", f"{name}-shm")
    _unlink(home, "index.sqlite", "index.sqlite-wal", "index.sqlite-shm")  # it follows another ledger: rebuilt
    databases = [name for name in seal if name.endswith(".sqlite")]
    for name in seal.keys() - set(databases):
        _replace(home / name, partial(shutil.copy2, backup_folder / name))
    blobs = blobs_of(home)
    copied = copy(folder(backup_folder / FILES), blobs)
    _publish(blobs)
    for name in sorted(databases, key=lambda n: n == "ledger.sqlite"):
        _replace(home / name, partial(shutil.copy2, backup_folder / name))
    return copied.files


def copy(source: Blobs, target: Blobs) -> BackupReport:
    """Copy all blobs, each checked by its hash, then all manifests; what vanishes meanwhile is passed over."""
    files = size = copied = 0
    damaged: list[str] = []
    for key in source.keys("blobs/"):
        owner, sha256 = parse_blob_key(key)
        found, there = source.stat(owner, sha256), target.stat(owner, sha256)
        if found is None:
            continue
        files, size = files + 1, size + found.size
        if there is None or there.size != found.size:
            copied += 1
            if not _copied(source, target, owner, sha256):
                damaged.append(key)
    for key in source.keys("results/"):
        try:
            data = _manifest(source, key)[0]
        except DamagedBlob as e:
            damaged.append(key)
            log.warning("not in the backup: %s", e)
            continue
        if data:
            files, size = files + 1, size + len(data)
            copied += _put(target, key, data)
    return BackupReport(files, size, copied, tuple(damaged))


def _copied(source: Blobs, target: Blobs, owner: str, sha256: str) -> bool:
    """Whether the blob's bytes are what its name says; others are not kept."""
    try:
        found = target.put(owner, source.local(owner, sha256))
    except (DamagedBlob, FileNotFoundError):
        return source.stat(owner, sha256) is None  # cleared meanwhile: no harm
    if found.sha256 != sha256:
        target.delete(blob_key(owner, found.sha256))
        log.warning("not in the backup: blob %s is damaged", sha256[:12])
    return found.sha256 == sha256


def _put(target: Blobs, key: str, data: bytes) -> bool:
    """Make a manifest what it is in the other store; whether that changed anything."""
    if target.create(key, data):
        return True
    with contextlib.suppress(DamagedBlob):  # of a bucket: it is replaced
        if read_document(target, key) == data:
            return False
    target.delete(key)
    return target.create(key, data)


def _manifest(blobs: Blobs, key: str) -> tuple[bytes, tuple[Artifact, ...]]:
    """A manifest as it is written, and what it names; nothing if it has vanished.

    Raises:
        DamagedBlob: it is none.
    """
    data = read_document(blobs, key)
    return (data, parse_manifest(data, key).artifacts) if data is not None else (b"", ())


def _publish(blobs: Blobs) -> None:
    for key in blobs.keys("results/"):
        owner = key.split("/")[1]
        try:
            artifacts = _manifest(blobs, key)[1]
        except DamagedBlob as e:
            log.warning("not published: %s", e)  # verify finds it
            continue
        for artifact in artifacts:
            if artifact.publish and blobs.stat(owner, artifact.sha256):
                blobs.publish(artifact.publish, owner, artifact.sha256)


def _unlink(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)


def _replace(target: Path, write: Callable[[Path], object]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as part:
        write(part)


def _sha256(file: Path) -> str:
    with file.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def maintenance_lock(home: Path) -> contextlib.AbstractContextManager[None]:
    """Hold the home's lock; it is let go with the process.

    Raises:
        Refused: somebody else clears up or makes a backup now.
    """
    no = Refused("gc or a backup is already running in this home", "Wait until it is finished.")
    return locked_or_refused(home / ".care.lock", no)
