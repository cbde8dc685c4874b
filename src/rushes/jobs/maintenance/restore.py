"""Restore: creates a home from a backup. File names in the backup cannot lead out of the home.

Only files that a home has are taken, and everything is checked before the first is written. Until all of it is there
the home has a mark, and whoever opens it is refused.
"""

import json
import re
from pathlib import Path

from rushes import home_folder
from rushes.blobs.port import Blobs
from rushes.domain.errors import DamagedBlob, NotFound, Refused
from rushes.files import copy_private, make_private, sync_path, write_whole
from rushes.jobs.maintenance.backup import (
    FILES,
    SEAL,
    SETTINGS,
    SNAPSHOT,
    OpenBlobs,
    copy,
    read_artifacts,
    sha256_of,
)  # fmt: skip
from rushes.settings import read_file
from rushes.telemetry import effect, log

LEDGER = "ledger.sqlite"
DATABASES = ("records.sqlite", LEDGER)  # in the order in which they are restored: the ledger says that all is there
_SNAPSHOT, _SHA256 = re.compile(rf"{SNAPSHOT}[0-9a-f]{{16}}"), re.compile(r"[0-9a-f]{64}")

Seal = dict[str, str]  # the name of each file of a snapshot, and its hash


def restore(backup_folder: Path, home: Path, folder: OpenBlobs, blobs_of: OpenBlobs) -> int:
    """Make a home from a backup: its settings, the results, the ledger last. Answers how many files.

    Killed anywhere, the same command begins again.

    Raises:
        NotFound: the folder is not a complete backup.
        Refused: there is already a home, the backup is damaged, or whoever made it is not trusted.
    """
    home_folder.check(backup_folder)
    snapshot, seal = _read_seal(backup_folder)
    read_file(snapshot / SETTINGS, trusted=home_folder.is_trusted(backup_folder))
    if (home / LEDGER).exists() and not (home / home_folder.RESTORING).exists():
        raise Refused(f"{home} is already a home", "Restore into another folder with --home.")
    for name, sha256 in seal.items():
        _check(snapshot / name, name, sha256)
    make_private(home)
    write_whole(home / home_folder.RESTORING, b"")
    _unlink(home, *(f"{name}-{log}" for name in DATABASES for log in ("wal", "shm")))  # of another database: replayed
    _unlink(home, "index.sqlite", "index.sqlite-wal", "index.sqlite-shm")  # it follows another ledger: rebuilt
    _take(snapshot, home, SETTINGS, seal)
    blobs = blobs_of(home)
    copied = copy(folder(backup_folder / FILES), blobs)
    _publish(blobs)
    for name in DATABASES:
        _take(snapshot, home, name, seal)
    with effect("restore"):
        _unlink(home, home_folder.RESTORING)
        sync_path(home)
    return copied.files


def _read_seal(backup_folder: Path) -> tuple[Path, Seal]:
    """The folder with the snapshot, and its files with their hashes."""
    try:
        doc = json.loads((backup_folder / SEAL).read_text())
        snapshot, seal = str(doc["snapshot"]), dict(doc["files"])
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise NotFound(f"{backup_folder} is not a complete backup", "Run rushes backup again.") from e
    known = seal.keys() <= {*DATABASES, SETTINGS} and all(_SHA256.fullmatch(str(hash)) for hash in seal.values())
    if not known or not _SNAPSHOT.fullmatch(snapshot) or (backup_folder / snapshot).is_symlink():
        raise Refused(f"{backup_folder / SEAL} names files that a backup does not have", "Use another backup.")
    return backup_folder / snapshot, seal


def _check(file: Path, name: str, sha256: str) -> None:
    try:
        is_sound = sha256_of(file) == sha256
    except OSError:  # missing, or a link
        is_sound = False
    if not is_sound:
        raise Refused(f"{name} of this backup is damaged", "Use another backup.")


def _take(snapshot: Path, home: Path, name: str, seal: Seal) -> None:
    """Copy one file, and check the copy before it has its name."""
    if name in seal:
        copy_private(snapshot / name, home / name, lambda part: _check(part, name, seal[name]))


def _publish(blobs: Blobs) -> None:
    for key in blobs.keys("results/"):
        owner = key.split("/")[1]
        try:
            artifacts = read_artifacts(blobs, key)[1]
        except DamagedBlob as e:
            log.warning("not published: %s", e)  # verify finds it
            continue
        for artifact in artifacts:
            if artifact.publish and blobs.stat(owner, artifact.sha256):
                blobs.publish(artifact.publish, owner, artifact.sha256)


def _unlink(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)
