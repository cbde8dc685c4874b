"""Which models a profile means, and what languages are called."""

from pathlib import Path

import pytest

from rushes.domain.errors import ModelMissing, Refused
from rushes.engines.models.languages import bcp47, whisper_code
from rushes.engines.models.speech import (
    SpeechModels,
    parse_speech_models,
    speech_model,
    speech_models,
)
from rushes.engines.models.store import ModelStore
from rushes.stages.speech.transcriber import decoding_options

TINY, BASE = "whisper-tiny.en@1a5afae0", "whisper-base@d01c3014"


def test_a_question_names_its_weights_by_hash(tmp_path: Path) -> None:
    store = ModelStore(tmp_path)
    assert speech_model("fast", store) == f"{TINY}+{BASE}"
    assert speech_model("balanced", store) == speech_model("high_quality", store) == BASE


def test_fast_hears_english_with_the_small_model_and_the_rest_with_the_other(tmp_path: Path) -> None:
    fast = parse_speech_models(speech_model("fast", ModelStore(tmp_path)))
    assert (fast.of("en"), fast.of("de")) == (TINY, BASE)
    assert (fast.other("en"), fast.other("de")) == (BASE, None)


def test_one_model_has_no_second_opinion() -> None:
    assert parse_speech_models(BASE) == SpeechModels(BASE, BASE)
    assert parse_speech_models(BASE).other("en") is None


def test_what_a_profile_needs_on_this_machine(tmp_path: Path) -> None:
    store = ModelStore(tmp_path)
    assert [m.id for m in speech_models("fast", store)] == ["whisper-tiny.en", "whisper-base"]
    assert [m.id for m in speech_models("balanced", store)] == ["whisper-base"]


def test_an_unknown_profile_and_an_empty_path_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="profile"):
        speech_model("best", ModelStore(tmp_path))
    with pytest.raises(ModelMissing):
        speech_model("balanced", ModelStore(tmp_path), str(tmp_path / "nothing"))


def test_only_fast_gives_up_the_beam() -> None:
    assert (
        decoding_options("fast", "en").beam_size,
        decoding_options("balanced", "").beam_size,
        decoding_options("high_quality", "").beam_size,
    ) == (1, 5, 5)
    assert decoding_options("balanced", "").language is None


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("en", "en"),
        ("eng", "en"),
        ("ger", "de"),
        ("deu", "de"),
        ("pt-BR", "pt"),
        ("jw", "jv"),
        ("und", ""),
        ("yue", "yue"),
    ],
)
def test_languages_are_called_by_their_bcp47_tags(code: str, tag: str) -> None:
    assert bcp47(code) == tag


def test_the_models_own_word_for_javanese_goes_back() -> None:
    assert (whisper_code("jv"), whisper_code("eng"), whisper_code("")) == ("jw", "en", "")
