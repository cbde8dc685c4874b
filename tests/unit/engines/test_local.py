"""The local engine with real weights: right words, in order, the same every time, without a network."""

import re
import socket
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rushes.domain.errors import ModelMissing
from rushes.engines.local import LocalEngine
from rushes.engines.models.store import ModelStore
from rushes.engines.port import RATE, DecodingOptions, Transcription
from tests import tiny_onnx
from tests.unit.speech_kit import JFK, JFK_WORDS, TWO_LANGUAGES, engine, models, pcm_of

TINY, BASE = "whisper-tiny.en", "whisper-base"
GREEDY = DecodingOptions(language="en", beam_size=1)


def said(transcription: Transcription) -> list[str]:
    return [re.sub(r"\W", "", w.text).lower() for p in transcription.phrases for w in p.words]


def test_a_clear_voice_is_understood_word_by_word() -> None:
    sound = pcm_of(JFK)
    transcription = engine().transcribe(TINY, sound, GREEDY)
    assert said(transcription) == JFK_WORDS
    words = [w for p in transcription.phrases for w in p.words]
    assert all(a.start <= a.end <= b.start + RATE // 10 for a, b in pairwise(words))
    assert all(0 <= w.start < w.end <= len(sound) + RATE // 2 for w in words)
    assert all(p.confidence > 0.5 and p.no_speech_prob < 0.5 and p.compression_ratio < 2 for p in transcription.phrases)


def test_the_answer_does_not_depend_on_threads_or_on_what_was_asked_before() -> None:
    sound = pcm_of(JFK)
    fresh = LocalEngine(models(), threads=1)
    engine().transcribe(TINY, sound[RATE:], GREEDY)
    assert fresh.transcribe(TINY, sound, GREEDY) == engine().transcribe(TINY, sound, GREEDY)
    fresh.unload()


def test_finding_the_language_and_being_told_it_give_the_same_words() -> None:
    sound = pcm_of(JFK)
    found = engine().transcribe(BASE, sound, replace(GREEDY, language=None))
    assert (found.language, found.language_confidence > 0.8) == ("en", True)
    assert found.phrases == engine().transcribe(BASE, sound, GREEDY).phrases


def test_a_few_seconds_tell_the_language() -> None:
    sound = pcm_of(TWO_LANGUAGES)
    english, german = sound[: 4 * RATE], sound[5 * RATE :]
    assert engine().detect_language(BASE, english)[0] == "en"
    assert engine().detect_language(BASE, german)[0] == "de"
    assert engine().detect_language(TINY, german) == ("en", 1.0)


def test_voice_is_found_where_somebody_speaks_and_not_in_silence_or_tones() -> None:
    voice = pcm_of(TWO_LANGUAGES)
    found = engine().detect_speech(voice)
    assert any(a < 4 * RATE for a, _ in found)
    assert not any(a < 4.6 * RATE and b > 4 * RATE for a, b in found)
    tone = (np.sin(np.arange(5 * RATE) * 0.17) * 0.3).astype(np.float32)
    assert not engine().detect_speech(np.zeros(5 * RATE, np.float32))
    assert sum(b - a for a, b in engine().detect_speech(tone)) < RATE


def test_no_question_reaches_for_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the engine wanted the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    fresh = LocalEngine(models())
    assert said(fresh.transcribe(TINY, pcm_of(JFK), GREEDY)) == JFK_WORDS
    fresh.unload()


def test_a_model_is_loaded_once_and_again_after_a_rest() -> None:
    fresh, short = LocalEngine(models()), pcm_of(JFK)[: 2 * RATE]
    loading = []
    for again in (False, False, True):
        if again:
            fresh.unload()
        fresh.transcribe(TINY, short, GREEDY)
        loading.append(fresh.loading)
    assert 0 < loading[0] == loading[1] < loading[2]
    fresh.unload()


def test_a_model_is_looked_up_once_by_each_of_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh, short = LocalEngine(models()), pcm_of(JFK)[: 2 * RATE]
    names = [TINY, models().known[TINY].name]
    said_first = [fresh.transcribe(name, short, GREEDY) for name in names]
    monkeypatch.setattr(ModelStore, "find", lambda *_: pytest.fail("it is looked up again"))
    assert [fresh.transcribe(name, short, GREEDY) for name in names] == said_first
    assert len(fresh._warm) == 1
    fresh.unload()


def test_other_weights_in_the_same_folder_are_another_model(tmp_path: Path) -> None:
    picture = np.full((8, 8, 3), 100, np.uint8)
    net, store = tmp_path / "net", ModelStore(tmp_path / "models", paths=[tmp_path / "net"])
    net.mkdir()
    store.folder.mkdir()
    engine, found = LocalEngine(store), []
    for width in (1, 2):
        pooled = tiny_onnx.node("AveragePool", ["image"], "seen", kernel_shape=[width, 1], strides=[width, 1])
        summed = tiny_onnx.node("ReduceSum", ["seen"], "depth", keepdims=1)
        tiny_onnx.write(net / "net.onnx", [pooled, summed], ("image", tiny_onnx.FLOAT, (1, 3, 8, 8)), "depth")
        found.append(float(engine.inverse_depth(store.name_of(net), [picture], inverse=True)[0].sum()))
    assert found[1] == pytest.approx(found[0] / 2)


def test_missing_weights_are_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing) as caught:
        LocalEngine(ModelStore(tmp_path)).transcribe(TINY, pcm_of(JFK), GREEDY)
    assert "rushes models pull whisper-tiny.en" in caught.value.advice
