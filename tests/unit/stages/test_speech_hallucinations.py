"""Doubts: loops, invention and loss are noticed; honest speech is left alone."""

import pytest

from rushes.engines.port import RATE
from rushes.stages.speech import hallucinations
from rushes.stages.speech.hallucinations import FAST, LOOP, LOST, assess, drop_hallucinations, drop_loops, has_loop
from tests.unit.speech_kit import transcription, words

TEN = [(0, 10 * RATE)]


def texts(found: object) -> str:
    return "".join(w.text for p in found.phrases for w in p.words).strip()  # type: ignore[attr-defined]


def test_honest_speech_has_no_findings() -> None:
    said = words("it was the best of times it was the worst of times it was the age of wisdom", step=0.5)
    finding = assess(transcription(said), TEN)
    assert finding.reasons == ()
    assert finding.badness < 0.5


def test_a_figure_of_speech_that_packs_well_is_no_loop_while_the_model_is_sure() -> None:
    said = words("it was the age of wisdom it was the age of foolishness it was the epoch of belief", step=0.5)
    assert assess(transcription(said, packs=2.6), TEN).reasons == ()
    unsure = words("it was the age of wisdom it was the age of foolishness", step=0.8, confidence=0.4)
    assert LOOP in assess(transcription(unsure, packs=2.6), TEN).reasons


@pytest.mark.parametrize("unit", ["you", "I am here", "so we went on and on to see the next of them"])
def test_words_that_go_round_are_a_loop_and_are_said_once(unit: str) -> None:
    said = words("we begin " + " ".join([unit] * 8) + " and end", step=0.1)
    assert has_loop(said)
    assert LOOP in assess(transcription(said), TEN).reasons
    assert texts(drop_loops(transcription(said))) == f"we begin {unit} and end"


def test_a_refrain_and_a_stutter_are_no_loop() -> None:
    assert not has_loop(words("no no no no I said no"))
    assert not has_loop(words("row row row your boat gently down the stream row row row your boat gently"))
    assert texts(drop_loops(transcription(words("no no no")))) == "no no no"


def test_text_that_packs_too_well_is_a_loop_even_if_no_words_repeat_exactly() -> None:
    assert LOOP in assess(transcription(words("la lala lalala lalalala", step=2), packs=3.5), TEN).reasons


def test_more_words_than_anybody_can_say_are_noticed() -> None:
    assert FAST in assess(transcription(words("incomprehensibility " * 29 + "end", step=0.05)), [(0, 2 * RATE)]).reasons


def test_speech_without_words_is_lost_whole_or_as_a_hole() -> None:
    assert LOST in assess(transcription(), TEN).reasons
    first_half_only = transcription(words("we only wrote the first half of it down", step=0.5))
    assert LOST in assess(first_half_only, [(0, 12 * RATE)]).reasons
    second_group_lost = assess(first_half_only, [(0, 5 * RATE), (5 * RATE, 8 * RATE)])
    assert LOST in second_group_lost.reasons


def test_losing_more_is_worse() -> None:
    some = transcription(words("one two three four five six seven eight", step=0.6))
    assert assess(transcription(), TEN).badness > assess(some, TEN).badness


@pytest.mark.parametrize("text", ["Thanks for watching!", "Thank you.", "Subtitles by the Amara.org community", "♪♪"])
def test_what_models_say_to_nothing_is_dropped_when_nobody_speaks(text: str) -> None:
    invented = transcription(words(text, step=0.1), confidence=0.3, no_speech_prob=0.8)
    assert drop_hallucinations(invented, [(0, RATE // 5)]).phrases == ()


def test_a_clear_thank_you_is_kept() -> None:
    thanks = transcription(words("Thank you.", step=0.5), confidence=0.9, no_speech_prob=0.01)
    assert assess(thanks, [(0, RATE)]).reasons == ()
    assert texts(drop_hallucinations(thanks, [(0, RATE)])) == "Thank you."


def test_text_far_from_any_voice_is_invented() -> None:
    stray = transcription(words("somebody was here", start=20), confidence=0.8)
    assert hallucinations.is_hallucination(stray.phrases[0], TEN)
