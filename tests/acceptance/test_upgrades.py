"""Two versions at one store: the wheel of today works beside one that adds a migration, and leaves for a breaking one.

Each version is a wheel that was built from the sources and unpacked; requirements come from this environment.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rushes.servers import postgres
from rushes.servers.process import Running
from tests.acceptance.conftest import draw, wait_for

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 120.0
MENU = "a job's recipe is called its menu"
ADDED = "ALTER TABLE {0}job ADD COLUMN colour TEXT;\nCREATE INDEX job_by_colour ON {0}job (colour);\n"
BREAKING = f"-- breaking: {MENU}\nALTER TABLE {{0}}job_text RENAME COLUMN recipe TO menu;\n"
LATER = "ALTER TABLE {0}job_text RENAME COLUMN menu TO recipe;\n"  # so that this very code can go on


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Where each version lies: as it is, with something added, and with a change that the first cannot go on with."""
    place = tmp_path_factory.mktemp("versions")
    return {
        "old": built(place / "old", {}),
        "new": built(place / "new", {"9001_added.sql": ADDED}),
        "breaking": built(
            place / "breaking", {"9001_added.sql": ADDED, "9002_breaking.sql": BREAKING, "9003_later.sql": LATER}
        ),
    }


def built(place: Path, migrations: dict[str, str]) -> Path:
    """A wheel of the sources with these migrations, unpacked."""
    tree = place / "tree"
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        tree.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for backend, prefix in (("sqlite", ""), ("postgres", "rushes.")):
        for name, text in migrations.items():
            (tree / "src/rushes/ledger" / backend / "migrations" / name).write_text(text.format(prefix), "utf-8")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)], cwd=tree, check=True)
    (wheel,) = place.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(place / "site")
    return place / "site"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = postgres.start(tmp_path_factory.mktemp("pg"))
    yield running
    running.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    home = tmp_path / ".rushes"
    home.mkdir(mode=0o700)
    if request.param == "postgres":
        url = request.getfixturevalue("server").url
        (home / "rushes.toml").write_text(f'store = "{url}"\nshared = true\n', "utf-8")
    return home


def command(site: Path, home: Path, *words: str) -> tuple[list[str], dict[str, str]]:
    env = {**os.environ, "PYTHONPATH": str(site), "RUSHES_HOME": str(home)}
    return [sys.executable, "-m", "rushes", *words], env


def rushes(site: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv, env = command(site, home, *words)
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=DEADLINE, cwd=home.parent)


@contextmanager
def worker(site: Path, home: Path) -> Iterator[subprocess.Popen[str]]:
    argv, env = command(site, home, "worker", "--slots", "1")
    process = subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True, cwd=home.parent)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def states(site: Path, home: Path) -> list[str]:
    done = rushes(site, home, "jobs", "ls", "--json")
    assert done.returncode == 0, done.stderr
    return [job["state"] for job in json.loads(done.stdout)["jobs"]]


def test_an_old_worker_works_beside_a_new_version_and_leaves_when_a_change_breaks_it(
    versions: dict[str, Path], home: Path
) -> None:
    old, new, breaking = (versions[name] for name in ("old", "new", "breaking"))
    film = draw(home.parent / "film.mp4", 2)
    assert rushes(old, home, "jobs", "ls").returncode == 0
    with worker(old, home) as process:
        added = rushes(new, home, "add", str(film), "--only", "playlist")
        assert added.returncode == 0, added.stderr
        wait_for(lambda: states(new, home) == ["completed"], "the old worker did not do what the new version added")
        assert states(old, home) == ["completed"], "the old version still reads what the new one has added to"
        assert process.poll() is None

        refused = rushes(breaking, home, "jobs", "ls")
        assert refused.returncode == 7
        assert MENU in refused.stderr
        assert "rushes migrate" in refused.stderr
        assert process.poll() is None
        asked = rushes(breaking, home, "migrate", "--check")
        assert (asked.returncode, asked.stdout.strip()) == (1, f"{MENU}  needed")
        done = rushes(breaking, home, "migrate")
        assert (done.returncode, done.stdout.strip()) == (0, f"{MENU}  done")

        _, said = process.communicate(timeout=DEADLINE)
        assert process.returncode == 7
        assert "newer rushes" in said
    late = rushes(old, home, "jobs", "ls")
    assert late.returncode == 7
    assert "newer rushes" in late.stderr
    assert states(breaking, home) == ["completed"]
    assert rushes(breaking, home, "migrate").stdout.strip() == "nothing to change"
