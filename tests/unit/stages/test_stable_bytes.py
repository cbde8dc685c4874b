"""What stages without a model make of a committed film, by hash: other bytes need another version of the stage.

Where bytes are meant to change: raise the version on the stage's card, then note the new ones by
`python tests/unit/test_stage_bytes.py`.
"""

import json
import os
import platform
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest

from rushes.domain.keys import JSON
from rushes.domain.observation import READINGS, Observation, dump
from rushes.domain.span import Span
from rushes.stages.audio import Audio
from rushes.stages.develop import Develop
from rushes.stages.playlist import Playlist
from rushes.stages.port import OutputDraft, Stage
from rushes.stages.probe import Probe
from rushes.stages.registry import load_stages
from rushes.stages.segments import Segments
from rushes.stages.shots import Shots
from rushes.stages.speech.transcriber import split_lines
from rushes.stages.transcript import Transcript
from tests.unit.film_work import FilmWork, chunks
from tests.unit.speech_kit import words
from tests.unit.vision_films import MEDIA

NOTED = Path(__file__).parent.with_name("stage_bytes.json")
STAGES: dict[str, Stage] = {
    s.spec.name: s for s in (Probe(), Develop(), Playlist(), Shots(), Audio(), Transcript(), Segments())
}
# On request, of what a model measured, or copies
ELSEWHERE = {"clip", "preview", "grade", "source_segments", "stereo", "join", "stills"}
MACHINE = f"{platform.machine()} av {av.__version__}"
PROMISED = os.environ.get("RUSHES_TEST_PROMISED") == "all"  # the test command installs the libraries of the notes


class _Deaf:
    """An engine that hears no voice: windows are empty, the pcm is what it is."""

    def detect_speech(self, _pcm: Any) -> list[tuple[int, int]]:
        return []


def _readings() -> list[Observation]:
    looks = [("Sale 50% off", 0), ("Sale 5O% off", 1), ("Sale 50% off", 2), ("see www.example.org @anna", 5)]
    box = (0.1, 0.1, 0.5, 0.1)
    return [Observation("text", Span(at, at + 1, Fraction(1)), text, 0.97, "en", box=box) for text, at in looks]


def _developed(folder: Path) -> FilmWork:
    engine: Any = _Deaf()
    work = FilmWork(MEDIA / "fixed.mov", folder, engine=engine)
    work.run(Probe())
    for span in chunks(work.facts, 2):
        work.run(Develop(), span)
    work.run(Audio(), wanted=["pcm", "windows"])  # the AAC encoder computes in floats: its bytes are a machine's
    work.run(Shots())
    work.run(Playlist())
    return work


def _told(work: FilmWork) -> None:
    heard = dump(split_lines(words("Good evening. Here is the news.", start=1), "en"))
    for stage, name, data, kind in (
        ("transcribe", "lines.jsonl", heard, "application/jsonl"),
        ("read_text", "readings.jsonl", dump(_readings()), READINGS),
    ):
        work.keep(stage, "lines", OutputDraft([work.artifact(name, data, kind)]))
    work.run(Transcript())
    work.run(Segments())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, JSON]:
    return make(tmp_path_factory.mktemp("bytes"))


def make(folder: Path) -> dict[str, JSON]:
    """By stage: its version, and the hash of everything that it made."""
    work = _developed(folder)
    _told(work)
    return {
        name: {"version": stage.spec.version, "sha256": dict(_hashes(work, name))} for name, stage in STAGES.items()
    }


def _hashes(work: FilmWork, stage: str) -> Iterator[tuple[str, str]]:
    for output, inputs in sorted(work.made.items()):
        if output.startswith(f"{stage}."):
            for chunk, one in enumerate(inputs):
                yield from ((f"{output}.{chunk}.{a.name}", a.sha256) for a in one.manifest.artifacts)


@pytest.mark.parametrize("stage", STAGES)
def test_the_same_version_makes_the_same_bytes(made: dict[str, JSON], stage: str) -> None:
    noted = json.loads(NOTED.read_text())
    if noted["machine"] != MACHINE:
        assert not PROMISED or platform.machine() not in noted["machine"].split(), "note the bytes of other libraries"
        pytest.skip(f"the bytes were noted on {noted['machine']}")
    assert len(made[stage]["sha256"]) > 0
    assert made[stage]["version"] == noted["stages"][stage]["version"], "note the bytes of the new version"
    assert made[stage]["sha256"] == noted["stages"][stage]["sha256"], "other bytes need another version"


def test_no_stage_without_a_model_is_left_out() -> None:
    free = {name for name, stage in load_stages().items() if not stage.spec.models}
    assert free - ELSEWHERE == set(STAGES)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        noted = {"machine": MACHINE, "stages": make(Path(scratch))}
    NOTED.write_text(json.dumps(noted, indent=1, sort_keys=True) + "\n")
