"""What the README tells people to type works.

Blocks marked ```` ```sh run ```` and ```` ```python run ```` are executed in the order of the page, in one folder that
holds a short film under every name they mention. In other `sh` blocks the project's own scripts are looked up.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rushes.model_settings import models_folder
from rushes.settings import load

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```([a-z]+)( run)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILM = re.compile(r"(--out )?\b([\w-]+\.(?:mp4|mov|mkv))\b")
PROMPT = re.compile(r"^\$ ", re.MULTILINE)


def blocks(*, run: bool) -> list[tuple[str, str]]:
    """(language, text) of the README's blocks."""
    found = FENCE.findall((ROOT / "README.md").read_text("utf-8"))
    return [(language, PROMPT.sub("", text)) for language, mark, text in found if bool(mark) == run]


def films(text: str) -> set[str]:
    """The films that must be there before a block is run."""
    return {name for out, name in FILM.findall(text) if not out}


def command(language: str, text: str) -> list[str]:
    return [sys.executable, "-c", text] if language == "python" else ["sh", "-eux", "-c", text]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A user who has just installed rushes, with the weights of this machine."""
    (tmp_path / "user").mkdir()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(tmp_path / "user"), "RUSHES_MODELS": str(models_folder(load().settings))}


def test_the_two_scripts_that_the_readme_opens_with_are_there() -> None:
    text = "\n".join(text for language, text in blocks(run=False) if language == "sh")
    scripts = re.findall(r"scripts/[a-z]+", text)
    assert {"scripts/demo", "scripts/test"} <= set(scripts)
    for name in scripts:
        assert os.access(ROOT / name, os.X_OK), name
        subprocess.run(["sh", "-n", name], cwd=ROOT, check=True)


def test_the_commands_of_the_readme_work(env: dict[str, str], spoken_film: Path, tmp_path: Path) -> None:
    place = tmp_path / "footage"
    place.mkdir()
    assert blocks(run=True), "the README has no block marked `sh run`"
    for language, text in blocks(run=True):
        for name in films(text):
            if not (place / name).exists():
                shutil.copy(spoken_film, place / name)
        done = subprocess.run(command(language, text), cwd=place, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
