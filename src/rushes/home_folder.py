"""The folder of a home: its owner and modes, whether it is trusted, and whether a restore was interrupted.

As git does: a home that belongs to somebody else, or that others can write to, is not used until it is trusted.
"""

import json
import os
import re
import shlex
import stat
from contextlib import suppress
from pathlib import Path

from rushes.domain.errors import WrongHome
from rushes.files import PRIVATE_BLOB, PRIVATE_FILE, PRIVATE_FOLDER, make_private, write_whole
from rushes.home_location import HOME_NAME
from rushes.settings import user_file
from rushes.telemetry import log

RESTORING = ".restoring"  # the mark of a home whose restore is not finished
_OTHERS, _WRITE = 0o077, 0o022
_OURS = re.compile(
    r"(files|copies|scratch|logs|uploads|sample|rushes\.toml|.+\.embeddings|.+\.lock|\.restoring"
    r"|.+\.sqlite.*)"
)  # in a home that is not called .rushes, and may hold films as well


def prepare(home: Path) -> None:
    """Make a home's folder, or check that the one there is safe to use, and close it to others.

    Raises:
        WrongHome: it cannot be made, is not ours, or is half restored.
    """
    try:
        make_private(home)
    except OSError as e:
        raise WrongHome(f"cannot create a home at {home}: {e.strerror}", "Choose another folder with --home.") from e
    check(home)
    if (home / RESTORING).exists():
        hint = f"Run it again: rushes --home {shlex.quote(str(home))} restore BACKUP"
        raise WrongHome(f"restoring {home} was not finished", hint)
    was_open = home.stat().st_mode & _OTHERS
    if _tighten(home) and was_open:
        log.warning("%s was readable by other users of this machine; now only its owner can read it", home)


def originals_of(home: Path) -> Path:
    """The folder that relative paths of originals begin in."""
    return home.parent if home.name == HOME_NAME else home


def check(folder: Path) -> None:
    """Refuse what somebody else made or can change.

    Raises:
        WrongHome: it, or its settings, belong to another user or can be written by others, and it is not trusted.
    """
    for path in (folder, folder / "rushes.toml"):
        if (why := _risk(folder, path)) and not is_trusted(folder):
            hint = f"If you trust everyone who can write there, run: rushes trust {shlex.quote(str(folder))}"
            raise WrongHome(f"{path} {why}", f"{hint} (or choose another home with --home)")


def _risk(folder: Path, path: Path) -> str:
    try:
        found = path.stat()
    except FileNotFoundError:
        return ""
    if found.st_uid not in (os.geteuid(), 0):
        return "belongs to another user"
    can_be_reached = folder.stat().st_mode & _OTHERS
    return "can be changed by other users" if found.st_mode & _WRITE and can_be_reached else ""


def is_trusted(folder: Path) -> bool:
    """Whether the user has said so."""
    return os.path.realpath(folder) in _trusted()


def trust(folder: Path) -> Path:
    """Remember in the user's own settings that a home or backup is trusted.

    Raises:
        WrongHome: there is none.
    """
    if not folder.is_dir():
        raise WrongHome(f"no home at {folder}", "Give a .rushes folder or a backup.")
    if folder.name != HOME_NAME and (folder / HOME_NAME).is_dir():
        folder /= HOME_NAME
    make_private(_file().parent)
    known = _trusted()  # also where there is no folder now: its disk may not be mounted
    write_whole(_file(), json.dumps(sorted({*known, os.path.realpath(folder)}), indent=1).encode())
    return folder


def remember(folder: Path) -> None:
    """The same for what this user has just made; where the user has no settings it must be trusted by hand."""
    with suppress(OSError):
        trust(folder)


def _file() -> Path:
    return user_file().with_name("trusted.json")


def _trusted() -> list[str]:
    with suppress(OSError, ValueError):
        return [str(path) for path in json.loads(_file().read_text("utf-8"))]
    return []


def _tighten(home: Path) -> bool:
    """Take the rights of others away from everything of a home that is ours; whether they had any."""
    with os.scandir(home) as entries:
        names = [entry.name for entry in entries]
    ours = [name for name in names if home.name == HOME_NAME or _OURS.fullmatch(name)]
    if len(ours) == len(names):
        _close(home, deep=False)
    closed = [_close(home / name) for name in ours]
    return any(closed)


def _close(path: Path, *, deep: bool = True) -> bool:
    """Whether there was something to close. File systems without modes, and files of others, stay as they are."""
    with suppress(OSError):
        found = path.lstat()
        if not found.st_mode & _OTHERS or stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
            return False
        path.chmod(_private_mode(found.st_mode))
        if path.lstat().st_mode & _OTHERS:
            return False
        for below, folders, files in os.walk(path) if deep and stat.S_ISDIR(found.st_mode) else ():
            for name in (*folders, *files):
                _close(Path(below, name), deep=False)
        return True
    return False


def _private_mode(mode: int) -> int:
    if stat.S_ISDIR(mode):
        return PRIVATE_FOLDER
    return PRIVATE_FILE if mode & stat.S_IWUSR else PRIVATE_BLOB
