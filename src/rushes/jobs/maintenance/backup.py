"""Backup: the ledger's snapshot first, then the results it names.

A folder is a backup when its seal is there. A backup that is repeated and killed half way leaves the earlier one whole.
One caretaker of a home at a time: gc must not clear what a backup is about to copy.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from rushes.blob_identity import copy_identity
from rushes.blobs.documents import read_document
from rushes.blobs.key_rules import checked_blob_key
from rushes.blobs.manifests import parse_manifest
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob, Refused
from rushes.domain.keys import blob_key, is_queue_document, parse_blob_key
from rushes.domain.result import Artifact
from rushes.files import READ, copy_private, locked_or_refused, make_private, write_whole
from rushes.jobs.maintenance.reports import BackupReport
from rushes.telemetry import effect, log

SEAL = "backup.json"  # written last: without it a folder is not a backup
SNAPSHOT = "snapshot-"  # what the seal names: a new folder for each backup
FILES = "files"  # the backup's own blob store
SETTINGS = "rushes.toml"
PATIENCE_SECONDS = 60.0  # of a command by hand: workers that clear up let go of the lock after each step

OpenBlobs = Callable[[Path], Blobs]


def backup(
    home: Path, blobs: Blobs, to: Path, snapshots: Mapping[str, Callable[[Path], None]], folder: OpenBlobs
) -> BackupReport:
    """Copy a home that may be in use; repeated into the same folder it copies only what is new.

    Raises:
        Refused: the folder holds something else.
    """
    if to.exists() and any(to.iterdir()) and not (to / SEAL).exists() and not (to / FILES).is_dir():
        raise Refused(f"{to} is not empty and not a backup", "Choose an empty folder.")
    make_private(to)
    now = to / f"{SNAPSHOT}{secrets.token_hex(8)}"
    make_private(now)
    for name, snapshot in snapshots.items():
        snapshot(now / name)
    if (home / SETTINGS).is_file():
        copy_private((home / SETTINGS).resolve(), now / SETTINGS)
    copied = copy(blobs, folder(to / FILES))
    seal = {"snapshot": now.name, "files": {file.name: sha256_of(file) for file in sorted(now.iterdir())}}
    with effect("backup"):
        write_whole(to / SEAL, json.dumps(seal).encode())
    for old in to.glob(f"{SNAPSHOT}*"):
        if old != now:
            shutil.rmtree(old)
    return copied


def copy(source: Blobs, target: Blobs) -> BackupReport:
    """Copy all blobs, each checked by its hash, manifests, and documents of queues; what vanishes is passed over."""
    copy_identity(source, target)
    files = size = copied = 0
    damaged: list[str] = []
    for key in source.keys("blobs/"):
        try:
            owner, sha256 = parse_blob_key(key)
            checked_blob_key(owner, sha256)
        except (ValueError, Refused):
            damaged.append(key)
            continue
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
            data = read_artifacts(source, key)[0]
        except DamagedBlob as e:
            damaged.append(key)
            log.warning("not in the backup: %s", e)
            continue
        if data:
            files, size = files + 1, size + len(data)
            copied += _put(target, key, data)
    for key in filter(is_queue_document, source.keys("jobs/")):
        if document := read_document(source, key):
            files, size = files + 1, size + len(document)
            copied += _put(target, key, document)
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


def read_artifacts(blobs: Blobs, key: str) -> tuple[bytes, tuple[Artifact, ...]]:
    """A manifest as it is written, and what it names; nothing if it has vanished.

    Raises:
        DamagedBlob: it is none.
    """
    data = read_document(blobs, key)
    return (data, parse_manifest(data, key).artifacts) if data is not None else (b"", ())


def sha256_of(file: Path) -> str:
    """The hash of a file; a link is not followed."""
    with os.fdopen(os.open(file, READ), "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def maintenance_lock(home: Path, patience: float = 0.0) -> contextlib.AbstractContextManager[None]:
    """Hold the home's lock, waiting at most so many seconds; it is let go with the process.

    Raises:
        Refused: somebody else clears up or makes a backup now.
    """
    no = Refused("gc or a backup is already running in this home", "Wait until it is finished.")
    return locked_or_refused(home / ".care.lock", no, patience)
