import hashlib
import wave
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from rushes.domain.errors import BadMedia
from rushes.media.developing.audio import AudioFacts, extract_audio
from rushes.media.reading.audio import _IntegerClock, _name_channels
from rushes.media.reading.probe import probe
from rushes.media.timeline import shift_seconds
from tests.unit.media_files import Film, cfr, make

Samples = NDArray[np.int16]


def extracted(path: Path, folder: Path) -> tuple[AudioFacts, Samples, Path]:
    pcm, sound = folder / "pcm.wav", folder / "sound.mp4"
    made = extract_audio(path, probe(path), pcm, sound, lambda _: None)
    with wave.open(str(pcm)) as wav:
        assert (wav.getframerate(), wav.getnchannels(), wav.getsampwidth()) == (16000, 1, 2)
        samples = np.frombuffer(wav.readframes(wav.getnframes()), "<i2")
    assert len(samples) == made.samples
    return made, samples, sound


def clicks(
    path: Path, rate: int, at: list[int], total: int, holes: tuple[int, int] = (0, 0), codec: str = "pcm_s16le"
) -> Path:
    """A track that is silent but for clicks at given samples; packets of 1024 samples within the hole are left out."""
    wave_form = np.zeros(total, np.int16)
    for sample in at:
        wave_form[sample : sample + rate // 400] = 20000
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=rate, layout="mono")
        assert isinstance(stream, av.AudioStream)
        for first in range(0, total, 1024):
            if holes[0] <= first < holes[1]:
                continue
            frame = av.AudioFrame.from_ndarray(
                wave_form[None, first : first + 1024].copy(), format="s16", layout="mono"
            )
            frame.rate, frame.pts, frame.time_base = rate, first, Fraction(1, rate)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path


def onsets(samples: Samples) -> list[float]:
    loud = np.flatnonzero(np.abs(samples.astype(int)) > 6000)
    return [float(s) / 16000 for i, s in enumerate(loud) if i == 0 or s - loud[i - 1] > 800]


@pytest.mark.parametrize("rate", [48000, 44100, 22050, 16000, 8000])
def test_sample_n_lies_at_its_media_time_at_every_rate(rate: int, tmp_path: Path) -> None:
    path = clicks(tmp_path / "x.mkv", rate, [rate, 2 * rate + rate // 2], 4 * rate)
    made, samples, _ = extracted(path, tmp_path)
    assert made.start == 0
    assert onsets(samples) == pytest.approx([1.0, 2.5], abs=0.002)
    assert made.samples == pytest.approx(64000, abs=2)


def test_a_gap_is_heard_as_silence_of_its_length(tmp_path: Path) -> None:
    path = clicks(tmp_path / "x.mkv", 48000, [48000, 144000], 192000, holes=(1024 * 60, 1024 * 120))
    made, samples, _ = extracted(path, tmp_path)
    assert onsets(samples) == pytest.approx([1.0, 3.0], abs=0.003)
    assert made.samples == pytest.approx(64000, abs=40)


def test_sound_that_begins_late_says_when(tmp_path: Path) -> None:
    path = make(
        tmp_path / "x.mkv",
        Film(cfr(4, 25, Fraction(1, 1000)), base=Fraction(1, 1000), tone=Fraction(2), tone_at=Fraction(3, 2)),
    )
    made, samples, _ = extracted(path, tmp_path)
    assert float(made.start + Fraction(int(onsets(samples)[0] * 16000), 16000)) == pytest.approx(1.5, abs=0.03)


def test_the_rendition_lies_on_the_timeline_of_the_picture(tmp_path: Path) -> None:
    path = clicks(tmp_path / "x.mkv", 48000, [48000, 6 * 48000], 9 * 48000)
    made, _, sound = extracted(path, tmp_path)
    shift = shift_seconds(probe(path))
    assert made.sound
    with av.open(str(sound)) as container:
        frames = list(container.decode(audio=0))
    heard = np.concatenate([f.to_ndarray()[0] for f in frames])
    assert frames[0].pts is not None
    begin = frames[0].pts / 48000 - shift
    loud = np.flatnonzero(np.abs(heard) > 0.2)
    assert loud[0] / 48000 + begin == pytest.approx(1.0, abs=0.003)
    assert loud[-1] / 48000 + begin == pytest.approx(6.0, abs=0.02)
    assert [round(s.start / 48000) for s in made.sound.segments] == [0, 4, 8]
    ends = [s.start + s.duration for s in made.sound.segments]
    assert ends[:-1] == [s.start for s in made.sound.segments[1:]]
    assert ends[-1] == 9 * 48000


def test_segments_are_byte_ranges_that_play_alone(tmp_path: Path) -> None:
    path = clicks(tmp_path / "x.mkv", 44100, [44100], 9 * 44100)
    made, _, sound = extracted(path, tmp_path)
    assert made.sound
    data = sound.read_bytes()
    last = made.sound.segments[-1]
    assert last.offset + last.length == len(data)
    (tmp_path / "alone.mp4").write_bytes(data[: made.sound.init] + data[last.offset :])
    with av.open(str(tmp_path / "alone.mp4")) as container:
        assert next(container.decode(audio=0)).rate == 44100


def test_bytes_are_the_same_from_run_to_run(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(1), tone=Fraction(3)))
    runs = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        extracted(path, tmp_path / name)
        runs.append([hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted((tmp_path / name).iterdir())])
    assert runs[0] == runs[1]


def test_the_default_track_is_chosen(tmp_path: Path) -> None:
    facts = probe(make(tmp_path / "x.m4a", Film([], tone=Fraction(1))))
    assert facts.sound == facts.audio[0]


def test_a_film_without_sound_is_refused_here(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(1)))
    with pytest.raises(BadMedia, match="has no sound"):
        extract_audio(path, probe(path), tmp_path / "a", None, lambda _: None)


def test_damaged_packets_are_counted_and_heard_as_silence(tmp_path: Path) -> None:
    path = clicks(tmp_path / "x.mkv", 48000, [48000, 144000], 192000, codec="flac")
    whole = extracted(path, tmp_path)[0]
    data = bytearray(path.read_bytes())
    middle = data.index(b"\xff\xf8", len(data) // 2)  # the head of a FLAC frame
    data[middle : middle + 2] = b"\0\0"
    path.write_bytes(data)
    made, samples, _ = extracted(path, tmp_path)
    assert made.damaged > 0
    assert made.samples == pytest.approx(whole.samples, abs=40)
    assert onsets(samples)[-1] == pytest.approx(3.0, abs=0.003)


def test_of_many_microphones_the_first_two_are_heard() -> None:
    heard = np.arange(64 * 10, dtype=np.int16).reshape(64, 10)  # a row for each sample
    frame = av.AudioFrame.from_ndarray(heard.reshape(1, -1), format="s16", layout="10 channels")
    frame.sample_rate, frame.pts = 48000, 7
    named = _name_channels(frame)
    assert named.to_ndarray().reshape(-1, 2).tolist() == heard[:, :2].tolist()
    assert (named.layout.name, named.sample_rate, named.pts) == ("stereo", 48000, 7)


@pytest.mark.parametrize(
    ("rate", "pts", "samples", "takes"),
    [(48000, 1024, 1024, True), (44100, 1024, 1024, False), (48000, None, 1024, False), (48000, 1030, 1024, False)],
)
def test_only_a_contiguous_frame_of_the_same_rate_is_counted_in_whole_numbers(
    rate: int, pts: int | None, samples: int, takes: bool
) -> None:
    clock = _IntegerClock.after(Fraction(1024, 48000), 48000, Fraction(1, 48000), Fraction(5, 48000), None)
    frame = av.AudioFrame.from_ndarray(np.zeros((1, samples), np.int16), format="s16", layout="mono")
    frame.sample_rate, frame.pts = rate, pts
    assert clock.takes(frame) is takes
    assert clock.samples == (samples if takes else 0)


def test_a_frame_that_reaches_the_end_is_cut_in_fractions() -> None:
    end = Fraction(1025, 48000)
    clock = _IntegerClock.after(Fraction(0), 48000, Fraction(1, 48000), Fraction(5, 48000), end)
    frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.int16), format="s16", layout="mono")
    frame.sample_rate, frame.pts = 48000, 0
    assert clock.takes(frame)
    frame.pts = 1024
    assert not clock.takes(frame)
    assert clock.clock() == Fraction(1024, 48000)


def test_the_rate_of_every_frame_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rates = clicks(tmp_path / "x.mkv", 48000, [], 4096), list[int]()
    monkeypatch.setattr("rushes.media.reading.audio.check_rate", rates.append)
    extracted(path, tmp_path)
    assert len(rates) >= 4
    assert {*rates} == {48000}
