"""Models of one's own stand in the question by name and hash, and are found again by it."""

from pathlib import Path

import pytest

from rushes.domain.errors import ModelMissing, Refused
from rushes.domain.video import Fingerprint
from rushes.home import Home
from rushes.jobs.intake import JobRequest, job_spec, missing_models
from rushes.jobs.needed_models import missing_by_stage, model_question, required_models
from rushes.wiring import open_home
from tests.unit.vision_films import MEDIA

SIZES = ("tiny", "base", "large-v3")


def home(folder: Path, monkeypatch: pytest.MonkeyPatch, capability: str, own: str) -> Home:
    monkeypatch.setenv("RUSHES_MODELS", str(folder / "models"))
    monkeypatch.setenv(f"RUSHES_{capability.upper()}_MODEL", own)
    (folder / "models").mkdir()
    return open_home(folder / "home")


def test_a_folder_is_asked_instead_of_the_profiles_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = home(tmp_path, monkeypatch, "places", str(MEDIA / "three_places"))
    name = model_question(here, "places", "fast")
    assert name.startswith("three_places@")
    assert here.models.find(name) == MEDIA / "three_places"
    assert required_models(here, "places", "fast") == ()
    assert [m.id for m in required_models(here, "text", "fast")] == ["ppocr-v6-tiny"]
    assert [m.id for m in required_models(here, "text", "high_quality")] == ["ppocr-v6-small"]


def test_each_profile_may_have_a_model_of_its_own_by_path_or_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = home(tmp_path, monkeypatch, "speech", "fast=whisper-base high_quality=anna/whisper-small")
    assert model_question(here, "speech", "fast") == here.models.known["whisper-base"].name
    assert [m.id for m in required_models(here, "speech", "fast")] == ["whisper-base"]
    assert model_question(here, "speech", "balanced").startswith("whisper-base@")
    with pytest.raises(ModelMissing, match="anna/whisper-small"):
        model_question(here, "speech", "high_quality")
    places = str(MEDIA / "three_places")
    monkeypatch.setenv("RUSHES_PLACES_MODEL", f"balanced={places}")
    other = open_home(tmp_path / "home")
    assert model_question(other, "places", "balanced").startswith("three_places@")
    assert model_question(other, "places", "fast").startswith("efficientnet-lite0@")
    assert other.models.find(model_question(other, "places", "balanced")) == MEDIA / "three_places"


def test_a_size_of_whisper_that_is_shipped_is_that_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = home(tmp_path, monkeypatch, "text", "")

    def asked(size: str) -> JobRequest:
        return JobRequest(only=("transcript",), profile="balanced", options={"transcribe": {"model_name": size}})

    speech = {size: job_spec(here, Fingerprint("/film.mp4", 1, 1), asked(size)).models["speech"] for size in SIZES}
    assert speech["tiny"] == model_question(here, "speech", "fast") != speech["base"]
    assert speech["base"] == speech["large-v3"] == model_question(here, "speech", "balanced")
    assert missing_models(here, asked("tiny")) == ("whisper-tiny.en", "whisper-base")
    assert missing_models(here, asked("large-v3")) == ("whisper-base",)


def test_another_size_of_whisper_is_asked_for_by_what_lies_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = home(tmp_path, monkeypatch, "text", "")

    def speech(size: str) -> str:
        asked = JobRequest(only=("transcript",), options={"transcribe": {"model_name": size}})
        return job_spec(here, Fingerprint("/film.mp4", 1, 1), asked).models["speech"]

    for size, command in (("small", "rushes models pull Systran/faster-whisper-small"), ("anna/own", "anna/own")):
        with pytest.raises(Refused, match="not on this machine") as caught:
            speech(size)
        assert command in caught.value.advice
    with pytest.raises(Refused, match="unknown model"):
        speech("../elsewhere")
    for id in ("Systran/faster-whisper-small", "Systran/faster-whisper-large-v3"):
        folder = tmp_path / "models" / id.replace("/", "--")
        folder.mkdir()
        for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
            (folder / name).write_text("{}")
        (folder / "model.bin").write_bytes(b"\6\0\0\0\x0c\0WhisperSpec\0" + id.encode())
    assert speech("small").startswith("Systran--faster-whisper-small@")
    assert speech("large-v3") == speech("large") != model_question(here, "speech", "balanced")
    assert missing_models(here, JobRequest(only=("transcript",), options={"transcribe": {"model_name": "small"}})) == ()


def test_tesseract_is_asked_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = home(tmp_path, monkeypatch, "text", "tesseract")
    assert model_question(here, "text", "balanced") == "tesseract"
    assert model_question(here, "faces", "balanced").startswith("yunet-sface@")


def test_a_request_may_ask_for_tesseract_by_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = home(tmp_path, monkeypatch, "text", "")
    asked = JobRequest(only=("segments",), stage_options={"read_text": {"engine": "tesseract", "languages": ["deu"]}})
    spec = job_spec(here, Fingerprint("/film.mp4", 1, 1), asked)
    assert spec.models["text"] == "tesseract"
    assert spec.options["read_text"] == {"engine": "tesseract", "languages": ["deu"], "profile": "balanced"}
    assert missing_models(here, asked) == ()
    assert missing_models(here, JobRequest(only=("segments",))) == ("ppocr-v6-small",)


def test_options_of_the_settings_hold_until_a_request_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUSHES_OPTIONS", "develop.target_fps=2 playlist.segments=ts")
    here = home(tmp_path, monkeypatch, "text", "")
    asked = JobRequest(recipe="text", stage_options={"develop": {"target_fps": 5}})
    options = job_spec(here, Fingerprint("/film.mp4", 1, 1), asked).options
    assert (options["develop"], options["playlist"]) == ({"target_fps": 5.0}, {"segments": "ts"})


def test_a_model_of_the_hub_that_is_not_here_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = home(tmp_path, monkeypatch, "speech", "anna/whisper-small")
    with pytest.raises(ModelMissing) as caught:
        model_question(here, "speech", "balanced")
    assert caught.value.advice == "Download it with: rushes models pull anna/whisper-small"


def test_only_stages_that_lack_a_model_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = home(tmp_path, monkeypatch, "text", "tesseract")
    lacks = missing_by_stage(here, [*here.specs, "of another package"], "fast", {"text": "tesseract"})
    assert lacks["transcribe"]
    assert all(lacks.values())
    assert "probe" not in lacks
    readers = [name for name, spec in here.specs.items() if spec.models == ("text",)]
    assert readers
    assert not {*readers} & lacks.keys()
