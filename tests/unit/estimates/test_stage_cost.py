"""What a film will take, from what tasks took."""

from fractions import Fraction

import pytest

from rushes.domain.video import AudioTrack, VideoFacts, VideoTrack
from rushes.estimates.rates import Rate, StageCost, stage_cost


def facts(seconds: int = 600, height: int = 1080, sound: bool = True) -> VideoFacts:
    picture = VideoTrack(0, "h264", 1920, height, Fraction(1), 0, seconds, seconds * 25, (0,), Fraction(25))
    track = AudioTrack(1, "aac", 48000, 2, Fraction(1), 0, seconds)
    return VideoFacts("0" * 64, 1, "mp4", picture, (track,) if sound else ())


def rate(seconds: float, media: float = 60.0, voiced: float | None = None, size: int = 0, height: int = 1080) -> Rate:
    return Rate("t", "stage", "m", seconds, media, 1920 * height, "", size, voiced)


def test_nothing_seen_is_nothing_known() -> None:
    assert stage_cost([], facts(), by_pixels=True) is None


def test_pictures_cost_by_their_size_and_length() -> None:
    found = stage_cost([rate(30.0, height=540)] * 10, facts(600), by_pixels=True)
    assert found
    assert found.p50 == pytest.approx(600.0)
    assert found.p90 == pytest.approx(600.0 * 1.05)


def test_silent_films_do_not_spoil_the_rate_of_speech() -> None:
    spoken = [rate(30.0, voiced=60.0)] * 5
    silent = [rate(0.01, voiced=0.0)] * 50
    found = stage_cost([*spoken, *silent], facts(600), by_pixels=False)
    assert found
    assert found.p50 == pytest.approx(0.5 * 600 * 5 / 55), "half a second for each second of speech"
    assert found.p90 >= found.p50
    more = stage_cost([*spoken, *silent[:5]], facts(600), by_pixels=False)
    assert more
    assert more.p90 == pytest.approx(0.5 * 600 * 1.1), "all of it may be speech"


def test_from_silence_alone_the_cost_of_speech_is_not_known() -> None:
    assert stage_cost([rate(0.01, voiced=0.0)] * 9, facts(), by_pixels=False) is None
    assert stage_cost([rate(0.01, voiced=0.0)] * 9, facts(sound=False), by_pixels=False) == StageCost()


def test_bytes_are_learnt_by_the_second_of_film() -> None:
    found = stage_cost([rate(1.0, size=6_000_000)], facts(600), by_pixels=True)
    assert found
    assert found.size == pytest.approx(60_000_000)
