"""Backup and restore: the ledger's snapshot first, then the files it names.

A folder is a backup only when its last file, the seal, is there.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rushes.domain.errors import NotFound, Refused

SEAL = "backup.json"  # written last: without it a folder is not a backup


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What a backup holds."""

    files: int
    size: int
    copied: int  # files that were not there from an earlier backup


def backup(home: Path, to: Path, snapshots: Mapping[str, Callable[[Path], None]]) -> BackedUp:
    """Copy a home that may be in use; repeated into the same folder it copies only what is new.

    Raises:
        Refused: the folder holds something else.
    """
    if to.exists() and any(to.iterdir()) and not (to / SEAL).exists() and not (to / "files").is_dir():
        raise Refused(f"{to} is not empty and not a backup", "Choose an empty folder.")
    (to / "files").mkdir(parents=True, exist_ok=True)
    (to / SEAL).unlink(missing_ok=True)
    for name, snapshot in snapshots.items():
        _replace(to / name, snapshot)
    copied = files = size = 0
    for file in _files(home / "files"):
        target = to / "files" / file.relative_to(home / "files")
        files, size = files + 1, size + file.stat().st_size
        if not target.exists() or (_look(target) != _look(file) and "blobs" not in target.parts):
            copied += 1
            _replace(target, partial(_copy, file))
    settings = home / "rushes.toml"
    if settings.is_file():
        _replace(to / settings.name, partial(_copy, settings))
    seal = {name: _sha256(to / name) for name in (*snapshots, *([settings.name] if settings.is_file() else []))}
    _replace(to / SEAL, partial(_write, json.dumps(seal)))
    return BackedUp(files, size, copied)


def restore(backup_folder: Path, home: Path) -> int:
    """Make a home from a backup: the files first, the ledger last. Answers how many files.

    Raises:
        NotFound: the folder is not a complete backup.
        Refused: there is a home already.
    """
    try:
        seal = json.loads((backup_folder / SEAL).read_text())
    except (OSError, ValueError) as e:
        raise NotFound(f"{backup_folder} is not a complete backup", "Run rushes backup again.") from e
    if (home / "ledger.sqlite").exists():
        raise Refused(f"{home} is a home already", "Restore into a new place with --home.")
    for name, sha256 in seal.items():
        if _sha256(backup_folder / name) != sha256:
            raise Refused(f"{name} of this backup is damaged", "Use another backup.")
    count = 0
    for file in _files(backup_folder / "files"):
        target = home / "files" / file.relative_to(backup_folder / "files")
        _replace(target, partial(_copy, file))
        count += 1
    for name in (*seal, "index.sqlite"):
        for left in (home / f"{name}-wal", home / f"{name}-shm"):  # a log of another database would be replayed
            left.unlink(missing_ok=True)
    for name in sorted(seal, key=lambda n: n == "ledger.sqlite"):
        _replace(home / name, partial(_copy, backup_folder / name))
    return count


def _look(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_size, found.st_mtime_ns


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    shutil.copystat(source, target)


def _write(text: str, target: Path) -> None:
    target.write_text(text)


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            path = Path(folder) / name
            if not path.is_symlink():
                yield path


def _replace(target: Path, write: Callable[[Path], None]) -> None:
    """Write beside, sync, then rename: a file is there whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    write(part)
    fd = os.open(part, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    part.rename(target)
    folder = os.open(target.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def _sha256(file: Path) -> str:
    with file.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()
