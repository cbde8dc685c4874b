"""The audio stage: windows are cut once per video, at silences, and cover all speech."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rushes.domain.errors import BadMedia
from rushes.engines.port import RATE, Pcm
from rushes.media.reading.probe import probe
from rushes.stages.audio import Audio
from rushes.stages.port import Input
from rushes.stages.speech import windows as cutting
from rushes.stages.speech.windows import MAX_LENGTH, Window, cut_windows, quietest_sample, speech_ranges
from tests.unit.speech_kit import JFK, FakeEngine, engine, make_work, pcm_of, results, sound_facts, write_wav

Range = tuple[int, int]


def blank(start: int, end: int) -> Pcm:
    return np.zeros(max(0, end - start), np.float32)


def seconds(*spans: tuple[float, float]) -> list[Range]:
    return [(round(a * RATE), round(b * RATE)) for a, b in spans]


def cut(spans: Sequence[Range], total: float = 600) -> list[list[tuple[float, float]]]:
    found = cut_windows(spans, blank, int(total * RATE))
    return [[(round(a / RATE, 2), round(b / RATE, 2)) for a, b in w.groups] for w in found]


@st.composite
def speech(draw: st.DrawFn) -> list[Range]:
    at, out = draw(st.integers(0, 40_000)), []
    for _ in range(draw(st.integers(0, 25))):
        length, gap = draw(st.integers(1, 60 * RATE)), draw(st.integers(1, 6 * RATE))
        out.append((at, at + length))
        at += length + gap
    return out


@settings(max_examples=60, deadline=None)
@given(speech())
def test_windows_hold_all_speech_in_order_and_none_is_too_long(spans: list[Range]) -> None:
    total = spans[-1][1] + RATE if spans else RATE
    found = cut_windows(spans, blank, total)
    groups = [g for w in found for g in w.groups]
    assert all(0 <= a < b <= total for a, b in groups)
    assert all(b[0] >= a[1] for a, b in pairwise(groups))
    assert all(w.length <= MAX_LENGTH for w in found)
    for a, b in spans:
        inside = sum(max(0, min(b, d) - max(a, c)) for c, d in groups)
        assert inside == b - a


def test_a_long_silence_is_a_cut_even_in_short_speech() -> None:
    assert len(cut(seconds((0, 3), (8, 11)))) == 2


def test_short_sentences_share_a_window_but_stay_groups_of_their_own() -> None:
    (window,) = cut(seconds((1, 3), (4.5, 6), (6.5, 9)))
    assert window == [(0.75, 3.25), (4.25, 9.25)]


def test_the_longest_silence_is_cut_not_the_one_nearest_to_twenty_seconds() -> None:
    found = cut(seconds((0, 6), (6.4, 13), (15, 19), (19.9, 25)))
    assert [w[0][0] for w in found] == [0, 14.75]


def test_unbroken_speech_is_cut_where_it_is_quietest() -> None:
    loud = (np.random.default_rng(3).standard_normal(50 * RATE) * 0.2).astype(np.float32)
    loud[int(16.9 * RATE) : int(17.3 * RATE)] = 0
    found = cut_windows([(0, 50 * RATE)], lambda a, b: loud[a:b], 50 * RATE)
    assert 16.9 * RATE < found[0].end < 17.3 * RATE
    assert all(w.length <= MAX_LENGTH for w in found)


def test_the_quietest_moment_of_almost_nothing_is_its_middle() -> None:
    assert quietest_sample(np.zeros(10, np.float32)) == 5


def test_looking_piece_by_piece_finds_what_looking_at_once_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = seconds((0.5, 8), (19.5, 20.5), (22, 41), (55, 60))
    sound = np.zeros(60 * RATE, np.float32)
    for a, b in truth:
        sound[a:b] = 1

    def detect_speech(pcm: Pcm) -> list[Range]:
        edges = np.flatnonzero(np.diff(np.concatenate([[0], pcm > 0, [0]])))
        return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]

    def read(a: int, b: int) -> Pcm:
        assert b - a <= 40 * RATE
        return sound[a:b]

    monkeypatch.setattr(cutting, "_BLOCK", 20 * RATE)
    assert speech_ranges(len(sound), read, detect_speech) == truth


def test_a_real_voice_is_found_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = np.concatenate([pcm_of(JFK)] * 3)
    whole = engine().detect_speech(sound)
    monkeypatch.setattr(cutting, "_BLOCK", 512 * 470)
    found = speech_ranges(len(sound), lambda a, b: sound[a:b], engine().detect_speech)
    assert len(found) == len(whole)
    assert all(abs(x - y) <= 1024 for a, b in zip(found, whole, strict=True) for x, y in zip(a, b, strict=True))


def test_a_window_survives_its_json() -> None:
    window = Window(((5, 10), (20, 30)))
    assert Window.from_json(window.to_json()) == window
    assert window.to_json()["start"] == 5
    assert window.to_json()["end"] == 30


def film(path: Path, sound: Pcm | None, at: Fraction = Fraction(0)) -> Path:
    """A few pictures, and sound that begins `at` seconds."""
    with av.open(str(path), "w") as out:
        video = out.add_stream("libx264", rate=5)
        video.width, video.height, video.pix_fmt = 64, 64, "yuv420p"
        audio = out.add_stream("flac", rate=RATE, layout="mono") if sound is not None else None
        for n in range(10):
            picture = av.VideoFrame(64, 64, "yuv420p")
            picture.pts = n
            out.mux(video.encode(picture))
        out.mux(video.encode(None))
        if audio is not None and sound is not None:
            samples = np.round(sound * 32767).astype(np.int16)
            for n in range(0, len(samples), 4096):
                frame = av.AudioFrame.from_ndarray(samples[None, n : n + 4096], "s16", "mono")
                frame.sample_rate, frame.pts, frame.time_base = (
                    RATE,
                    n + int(at * RATE),
                    Fraction(1, RATE),
                )
                out.mux(audio.encode(frame))
            out.mux(audio.encode(None))
    return path


def run(path: Path, scratch: Path) -> dict[str, Input]:
    work = make_work(Audio(), probe(path), scratch, source=path, engine=engine())
    Audio().run(work)
    return {name.removeprefix("audio."): found for name, (found,) in results(work).items()}


@pytest.mark.parametrize("start", [Fraction(0), Fraction(5, 2)])
def test_sample_n_lies_at_the_media_time_that_is_written_down(tmp_path: Path, start: Fraction) -> None:
    made = run(film(tmp_path / "film.mkv", pcm_of(JFK), start), tmp_path)
    doc = made["windows"].json("windows.json")
    assert Fraction(*doc["start"]) == start
    assert doc["offset"] == int(start * RATE)
    assert abs(doc["samples"] - len(pcm_of(JFK))) <= 64
    assert len(doc["windows"]) == 1
    assert made["sound"].manifest.facts["segments"]
    assert made["pcm"].path("pcm.wav").stat().st_size > 2 * doc["samples"]


def test_a_film_without_sound_has_no_windows_and_no_files(tmp_path: Path) -> None:
    made = run(film(tmp_path / "mute.mkv", None), tmp_path)
    assert made["windows"].json("windows.json")["windows"] == []
    assert made["pcm"].manifest.artifacts == made["sound"].manifest.artifacts == ()


def test_sound_that_cannot_be_decoded_spoils_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise BadMedia("none of the sound can be decoded")

    monkeypatch.setattr("rushes.stages.audio.extract_audio", broken)
    source = write_wav(tmp_path / "a.wav", pcm_of(JFK))
    work = make_work(Audio(), sound_facts(11, video_seconds=11), tmp_path, source=source)
    Audio().run(work)
    assert results(work)["audio.windows"][0].json("windows.json")["windows"] == []
    with pytest.raises(BadMedia):
        Audio().run(make_work(Audio(), sound_facts(11), tmp_path, source=source))


def test_the_same_film_gives_the_same_bytes(tmp_path: Path) -> None:
    path = film(tmp_path / "film.mkv", pcm_of(JFK))
    once, again = (run(path, tmp_path) for _ in range(2))
    assert [m.manifest.artifacts for m in once.values()] == [m.manifest.artifacts for m in again.values()]


def test_silence_has_no_windows(tmp_path: Path) -> None:
    class Deaf(FakeEngine):
        def detect_speech(self, pcm: Pcm) -> list[Range]:
            return []

    source = film(tmp_path / "quiet.mkv", np.zeros(RATE, np.float32))
    work = make_work(Audio(), probe(source), tmp_path, source=source, engine=Deaf())
    Audio().run(work)
    assert results(work)["audio.windows"][0].manifest.count == 0


def test_without_the_filter_all_sound_is_heard_and_nobody_is_asked_where_speech_is(tmp_path: Path) -> None:
    class Unasked(FakeEngine):
        def detect_speech(self, pcm: Pcm) -> list[Range]:
            raise AssertionError("nobody asks")

    source = film(tmp_path / "quiet.mkv", np.zeros(RATE, np.float32))
    work = make_work(Audio(), probe(source), tmp_path, source=source, engine=Unasked(), options={"vad_filter": False})
    Audio().run(work)
    doc = results(work)["audio.windows"][0].json("windows.json")
    assert sum(b - a for window in doc["windows"] for a, b in window["groups"]) == RATE
