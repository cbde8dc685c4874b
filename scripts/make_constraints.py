"""Writes constraints.txt: all packages that set-up installs, with versions and the hashes of all their files on PyPI.

A version stays as it is unless pyproject.toml forbids it; --upgrade takes the newest ones. --check needs no network: it
only says what pyproject.toml asks for and the file does not have.
"""

import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "constraints.txt"
HEAD = """\
# Exact versions of everything that set-up installs, for Python 3.11 and later, with the hashes of all their files.
# Made from pyproject.toml by scripts/make_constraints.py. An environment is all that stands above the line of its end.
"""
ENVIRONMENTS = {"run": ["serve"], "test": ["test"], "prove": ["test", "prove"]}  # extras; each holds the one before it
TOOLS = ["editables", "pip"]  # beside the build back-end: rushes itself is installed without a network
HELD = ["backports-strenum<=1.2.8"]  # the last one that pip takes for Python 3.11
UV = "uv==0.13.8"


def main(options: list[str]) -> int:
    """Make the file, or with --check say what is missing in it."""
    if "--check" not in options:
        make([option for option in options if option == "--upgrade"])
    faults = list(missing(_project(), FILE.read_text("utf-8")))
    for fault in faults:
        print(f"constraints.txt: {fault}; run scripts/make_constraints.py", file=sys.stderr)
    return 1 if faults else 0


def make(options: list[str]) -> None:
    """Resolve the largest environment; the smaller ones, at the same versions, tell where each package stands."""
    with TemporaryDirectory() as scratch:
        uv = shutil.which("uv") or fetched_uv(Path(scratch))
        pins = resolved(uv, "prove", Path(scratch, "pins"), FILE.read_text("utf-8"), "--generate-hashes", *options)
        small = {kind: resolved(uv, kind, Path(scratch, kind), "".join(pins)) for kind in ("run", "test")}
    text, left = HEAD, pins
    for kind in ENVIRONMENTS:
        names = {_name_of(pin) for pin in small.get(kind, left)}
        text += "".join(pin for pin in left if _name_of(pin) in names) + f"# end of {kind}\n"
        left = [pin for pin in left if _name_of(pin) not in names]
    FILE.write_text(text, "utf-8")


def fetched_uv(scratch: Path) -> str:
    """The resolver, for those who do not have it."""
    venv.create(scratch / "uv", with_pip=True)
    subprocess.run([scratch / "uv/bin/pip", "install", "--quiet", UV], check=True)
    return str(scratch / "uv/bin/uv")


def resolved(uv: str, kind: str, out: Path, known: str, *options: str) -> list[str]:
    """The pins of an environment, each with its lines of hashes; versions that are known already are kept."""
    tools, held = out.with_suffix(".in"), out.with_suffix(".held")
    tools.write_text("\n".join(map(str, asked(_project(), []))))
    held.write_text("\n".join(HELD))
    out.write_text(known)
    files = [str(ROOT / "pyproject.toml"), str(tools), f"--constraints={held}", f"--output-file={out}"]
    extras = [f"--extra={extra}" for extra in ENVIRONMENTS[kind]]
    forms = ["--universal", "--python-version=3.11", "--no-header", "--no-annotate", "--quiet"]
    subprocess.run([uv, "pip", "compile", *files, *extras, *forms, *options], check=True, stdout=subprocess.DEVNULL)
    return _pins_of(out.read_text("utf-8"))


def missing(pyproject: dict[str, Any], text: str) -> Iterator[str]:
    """What an environment would lack, and pins without hashes."""
    yield from (f"{_name_of(pin)} has no hash" for pin in _pins_of(text) if "--hash=sha256:" not in pin)
    for kind, extras in ENVIRONMENTS.items():
        above, end, _ = text.partition(f"# end of {kind}\n")
        if not end:
            yield f"there is no end of {kind}"
        versions: dict[str, list[str]] = {}
        for pin in _pins_of(above):
            versions.setdefault(_name_of(pin), []).append(re.split(r"==|\s", pin)[1])
        for need in asked(pyproject, extras):
            found = versions.get(canonicalize_name(need.name), [])
            if not found or not all(need.specifier.contains(version, prereleases=True) for version in found):
                yield f"{kind} asks for {need}, and there is {' and '.join(found) or 'none'}"


def asked(pyproject: dict[str, Any], extras: list[str]) -> Iterator[Requirement]:
    """What pyproject.toml names for an environment itself, with the tools that install rushes."""
    about = pyproject["project"]
    names = [*pyproject["build-system"]["requires"], *TOOLS, *about["dependencies"]]
    for extra in extras:
        names += about["optional-dependencies"][extra]
    for need in map(Requirement, names):
        if need.name == about["name"]:
            yield from asked(pyproject, sorted(need.extras))
        else:
            yield need


def _pins_of(text: str) -> list[str]:
    return re.findall(r"^[^\s#].*\n(?:[ \t].*\n)*", text, re.MULTILINE)


def _name_of(pin: str) -> str:
    return canonicalize_name(pin.partition("==")[0])


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
