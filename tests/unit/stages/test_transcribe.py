"""The transcribe stage: every window once, whatever the grid; doubtful answers asked again; lines that make sense."""

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rushes.domain.observation import Observation, load
from rushes.domain.span import Span
from rushes.domain.video import VideoFacts
from rushes.engines.models.speech import parse_speech_models, speech_model
from rushes.engines.port import RATE, SpeechEngine, Word
from rushes.engines.stub import StubEngine
from rushes.plan.grid import grid
from rushes.stages.audio import Audio
from rushes.stages.port import Input
from rushes.stages.speech.transcriber import MAX_CHARACTERS, Transcriber, monotonic_words, split_lines
from rushes.stages.speech.windows import PcmFile, Window, cut_windows, open_pcm, speech_ranges
from rushes.stages.transcribe import Transcribe
from tests.memory_blobs import MemoryBlobs
from tests.unit.speech_kit import (
    JFK,
    JFK_WORDS,
    TWO_LANGUAGES,
    FakeEngine,
    engine,
    make_work,
    models,
    pcm_of,
    results,
    sound_facts,
    transcription,
    words,
    write_wav,
)

MODELS = {"speech": "english+every"}
Range = tuple[int, int]


def noise(path: Path, bursts: Sequence[tuple[float, float]], total: float) -> Path:
    chance = np.random.default_rng(5)
    sound = np.zeros(int(total * RATE), np.float32)
    for a, b in bursts:
        length = int(b * RATE) - int(a * RATE)
        sound[int(a * RATE) : int(a * RATE) + length] = chance.standard_normal(length) * 0.1
    return write_wav(path, np.clip(sound, -1, 1))


def prepared(
    wav: Path, offset: int, engine: SpeechEngine, blobs: MemoryBlobs, scratch: Path
) -> dict[str, tuple[Input]]:
    """What the audio stage would have made of a WAV whose sample 0 lies at `offset`."""
    work = make_work(Audio(), sound_facts(1), scratch, blobs=blobs)
    sound = open_pcm(wav)
    found = cut_windows(speech_ranges(sound.samples, sound.read, engine.detect_speech), sound.read, sound.samples)
    work.save("pcm", "pcm.wav", wav, "audio/wav")
    doc = {"offset": offset, "windows": [w.to_json() for w in found]}
    work.save_json("windows", "windows.json", doc)
    return results(work)


def transcribed(
    spans: Sequence[Span],
    facts: VideoFacts,
    inputs: dict[str, tuple[Input]],
    engine: SpeechEngine,
    scratch: Path,
    **more: object,
) -> list[Observation]:
    found: list[Observation] = []
    for chunk, span in enumerate(spans):
        work = make_work(
            Transcribe(),
            facts,
            scratch,
            inputs=inputs,
            blobs=inputs["audio.pcm"][0].blobs,
            span=span,
            chunk=chunk,
            engine=engine,
            **{"models": MODELS} | more,  # type: ignore[arg-type]
        )
        Transcribe().run(work)
        (result,) = results(work)["transcribe.lines"]
        mine = list(load(result.bytes("lines.jsonl")))
        assert result.manifest.count == len(mine)
        found += mine
    return found


@pytest.mark.parametrize("start", [Fraction(0), Fraction(-3, 2), Fraction(1001, 700)])
def test_the_grid_decides_who_works_and_never_what_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Fraction
) -> None:
    stub, blobs = StubEngine(), MemoryBlobs()
    wav = noise(tmp_path / "a.wav", [(0.2, 4), (4.5, 9), (14, 33), (33.5, 47), (60, 61), (80.25, 82), (95, 119)], 120)
    facts = sound_facts(120, start)
    inputs = prepared(wav, round(start * RATE), stub, blobs, tmp_path)
    whole = transcribed(grid(facts, 600), facts, inputs, stub, tmp_path)
    assert len(whole) > 5
    assert all(a.span.end <= b.span.start for a, b in pairwise(whole))
    for seconds in (5, 20, 60):
        assert transcribed(grid(facts, seconds), facts, inputs, stub, tmp_path) == whole


def test_sound_before_and_after_the_pictures_is_heard_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub, blobs = StubEngine(), MemoryBlobs()
    wav = noise(tmp_path / "a.wav", [(1, 3), (30, 32), (58, 60)], 60)
    inputs = prepared(wav, 0, stub, blobs, tmp_path)
    facts = sound_facts(60, video_seconds=20)
    spans = [Span(10_000, 15_000, Fraction(1, 1000)), Span(15_000, 20_000, Fraction(1, 1000))]
    starts = [round(o.span.start / RATE) for o in transcribed(spans, facts, inputs, stub, tmp_path)]
    assert {1, 30, 58} <= set(starts)


def test_a_film_without_speech_has_no_lines_and_asks_for_no_model(tmp_path: Path) -> None:
    wav = write_wav(tmp_path / "a.wav", np.zeros(0, np.float32))
    inputs = prepared(wav, 0, FakeEngine(), MemoryBlobs(), tmp_path)
    facts = sound_facts(5)
    assert transcribed(grid(facts, 60), facts, inputs, FakeEngine(), tmp_path, models={}) == []


def transcriber(
    tmp_path: Path, fake: FakeEngine, profile: str = "balanced", language: str = "", total: float = 60
) -> Transcriber:
    wav = write_wav(tmp_path / "l.wav", np.zeros(int(total * RATE), np.float32))
    question = "english+every" if profile == "fast" else "every"
    return Transcriber(fake, parse_speech_models(question), open_pcm(wav), profile, language)


GOOD = transcription(words("this is what was really said in these ten seconds of speech", step=0.7))
LOOP = transcription(words(" ".join(["and so on"] * 10), step=0.3))


def test_a_loop_is_decoded_again_without_repeats_and_the_better_answer_kept(tmp_path: Path) -> None:
    fake = FakeEngine(LOOP, LOOP, GOOD)
    (line,) = transcriber(tmp_path, fake).transcribe(Window(((0, 10 * RATE),)))
    assert line.text.startswith("this is what was really said")
    assert not line.extra
    assert [(h.full_context, h.no_repeat_ngram_size) for _, h in fake.asked] == [(False, 0), (True, 0), (True, 3)]


def test_a_second_answer_that_is_worse_is_not_taken(tmp_path: Path) -> None:
    odd = transcription(words("this is what was said in the ten seconds that we heard", step=0.7), packs=3.5)
    worse = transcription(words("this what said in ten second heard of the whole thing", step=0.7, confidence=0.3))
    (line,) = transcriber(tmp_path, FakeEngine(odd, worse)).transcribe(Window(((0, 10 * RATE),)))
    assert line.text.startswith("this is what was said")
    assert line.extra == {"doubtful": True}


def test_what_stays_doubtful_is_marked_and_its_loop_said_once(tmp_path: Path) -> None:
    found = list(transcriber(tmp_path, FakeEngine(LOOP)).transcribe(Window(((0, 10 * RATE),))))
    assert [o.text for o in found] == ["and so on"]
    assert found[0].extra == {"doubtful": True}


def test_the_other_model_is_asked_if_the_question_names_one(tmp_path: Path) -> None:
    fake = FakeEngine(LOOP, LOOP, LOOP, GOOD)
    list(transcriber(tmp_path, fake, "fast").transcribe(Window(((0, 10 * RATE),))))
    assert [m for m, _ in fake.asked] == ["english", "english", "english", "every"]


def test_invented_text_is_dropped(tmp_path: Path) -> None:
    thanks = transcription(words("Thanks for watching!", step=0.1), confidence=0.3, no_speech_prob=0.9)
    assert list(transcriber(tmp_path, FakeEngine(thanks)).transcribe(Window(((0, RATE // 4),)))) == []


def test_a_phrase_invented_for_the_silence_at_the_end_costs_no_second_look(tmp_path: Path) -> None:
    you = transcription(words("You", start=9.4, step=0.5), confidence=0.3, no_speech_prob=0.7).phrases
    fake = FakeEngine(replace(GOOD, phrases=(*GOOD.phrases, *you)))
    (line,) = transcriber(tmp_path, fake).transcribe(Window(((0, 10 * RATE),)))
    assert line.text.endswith("of speech")
    assert not line.extra
    assert len(fake.asked) == 1


def test_no_answer_is_taken_by_chance(tmp_path: Path) -> None:
    fake = FakeEngine(LOOP)
    list(transcriber(tmp_path, fake, "fast").transcribe(Window(((0, 10 * RATE),))))
    assert all(h.temperature == 0 for _, h in fake.asked)


def test_groups_of_another_language_are_decoded_apart(tmp_path: Path) -> None:
    groups = ((0, 5 * RATE), (6 * RATE, 11 * RATE), (12 * RATE, 17 * RATE))
    fake = FakeEngine(
        transcription(words("some words that fill five seconds well", step=0.7)),
        languages=[("en", 0.9), ("en", 0.9), ("de", 0.9)],
    )
    list(transcriber(tmp_path, fake).transcribe(Window(groups)))
    assert [h.language for _, h in fake.asked][:1] == ["en"]
    assert "de" in {h.language for _, h in fake.asked}


def test_an_unclear_language_is_asked_of_the_half_minute_round_it(tmp_path: Path) -> None:
    fake = FakeEngine(GOOD, languages=[("cy", 0.3), ("en", 0.9)])
    list(transcriber(tmp_path, fake).transcribe(Window(((20 * RATE, 30 * RATE),))))
    assert fake.lengths == [10 * RATE, 30 * RATE]
    assert fake.asked[0][1].language == "en"


def test_a_given_language_is_not_looked_for(tmp_path: Path) -> None:
    fake = FakeEngine(GOOD)
    list(transcriber(tmp_path, fake, language="de").transcribe(Window(((0, 10 * RATE),))))
    assert fake.lengths == []
    assert fake.asked[0][1].language == "de"


def test_words_of_packed_groups_go_back_to_where_they_were_said(tmp_path: Path) -> None:
    said = words("one two three four five six", step=1.0)
    window = Window(((10 * RATE, 13 * RATE), (16 * RATE, 19 * RATE)))
    found = list(transcriber(tmp_path, FakeEngine(transcription(said))).transcribe(window))
    starts = [a / RATE for line in found for _, a, _, _ in line.words]
    assert starts == [10, 11, 12, 16, 17, 18]


def test_lines_end_with_sentences_and_pauses_but_not_with_abbreviations() -> None:
    said = [*words("I met Dr. Smith at 5 p.m. yesterday. He was well."), *words("And then", start=9)]
    assert [o.text for o in split_lines(said, "en")] == [
        "I met Dr. Smith at 5 p.m. yesterday.",
        "He was well.",
        "And then",
    ]


def test_a_long_line_is_split_at_a_comma_near_its_middle() -> None:
    text = "we walked along the whole of the shore until the evening came and the lights went on in the town, " * 2
    found = split_lines(words(text.strip()), "en")
    assert all(len(o.text) <= MAX_CHARACTERS for o in found)
    assert found[0].text.endswith("town,")


def test_numbers_are_rounded_before_they_are_written() -> None:
    (line,) = split_lines(words("well", confidence=0.123456789), "en")
    assert (line.confidence, line.words[0][3]) == (0.123, 0.123)


@given(st.lists(st.tuples(st.integers(-500, 5000), st.integers(-500, 5000)), max_size=30))
def test_word_times_follow_each_other_inside_the_window(times: list[Range]) -> None:
    found = monotonic_words([Word(" a", a, b, 0.5) for a, b in times], 100, 4000)
    assert len(found) == len(times)
    assert all(100 <= w.start <= w.end <= 4000 for w in found)
    assert all(a.end <= b.start for a, b in pairwise(found))


def real(path: Path, tmp_path: Path, profile: str, language: str = "") -> list[Observation]:
    blobs = MemoryBlobs()
    wav = write_wav(tmp_path / "real.wav", pcm_of(path))
    inputs = prepared(wav, 0, engine(), blobs, tmp_path)
    facts = sound_facts(60)
    return transcribed(
        grid(facts, 60), facts, inputs, engine(), tmp_path,
        models={"speech": speech_model(profile, models())}, options={"profile": profile, "language": language},
    )  # fmt: skip


def test_a_real_voice_becomes_lines_with_words_and_times(tmp_path: Path) -> None:
    found = real(JFK, tmp_path, "fast", "en")
    assert re.sub(r"[^\w ]", "", " ".join(o.text for o in found)).lower().split() == JFK_WORDS
    assert {o.language for o in found} == {"en"}
    assert not any(o.extra for o in found)
    assert [w[0].strip(",.;") for w in found[-1].words][-1] == "country"


def test_a_film_that_changes_its_language_is_heard_in_both(tmp_path: Path) -> None:
    found = real(TWO_LANGUAGES, tmp_path, "fast")
    assert [o.language for o in found] == ["en", "de"]
    assert "copies or substantial portions" in found[0].text
    assert "diese Software" in found[1].text


def test_noise_and_tones_are_no_error_and_no_words(tmp_path: Path) -> None:
    hum = np.sin(np.arange(8 * RATE) * 0.05) * 0.2 + np.random.default_rng(1).standard_normal(8 * RATE) * 0.05
    sound = PcmFile(write_wav(tmp_path / "h.wav", hum.astype(np.float32)), 8 * RATE)
    transcriber = Transcriber(engine(), parse_speech_models(speech_model("fast", models())), sound, "fast", "en")
    assert all(o.extra or o.confidence < 0.6 for o in transcriber.transcribe(Window(((0, 8 * RATE),))))
