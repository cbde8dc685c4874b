"""Small files that ask for much memory or time are refused in words, and what they say is kept short."""

import os
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import av
import pytest

from rushes.domain.errors import BadMedia, OverBudget
from rushes.media import budget as budgets
from rushes.media.budget import Budget, MeteredReader, run_within
from rushes.media.open import Limits, short_text
from rushes.media.reading.probe import probe
from tests.hostile.containers import flac, in_segment, matroska_tags, titled, vorbis_comments, wav
from tests.unit.media_files import Film, make, plain

PEAK = """
import resource, sys
from pathlib import Path
from rushes.media.developing.audio import extract_audio
from rushes.media.reading.probe import probe
source, out = Path(sys.argv[1]), Path(sys.argv[2])
facts = probe(source)
extract_audio(source, facts, out / "pcm.wav", out / "sound.mp4", lambda _: None)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.parametrize("rate", [1, 100, 3_999, 768_001, 2**31 - 1])
def test_sound_at_a_rate_that_nobody_records_is_refused(rate: int, tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(wav(rate, samples=20_000))
    with pytest.raises(BadMedia, match=f"{rate} samples a second"):
        probe(path)


@pytest.mark.parametrize("rate", [4_000, 768_000])
def test_sound_at_the_limits_is_read(rate: int, tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(wav(rate, samples=20_000))
    (track,) = probe(path).audio
    assert (track.end - track.start) * track.base == Fraction(20_000, rate)


def _peak(path: Path, folder: Path) -> int:
    """Megabytes that a process needs at most to extract the sound."""
    folder.mkdir()
    argv = [sys.executable, "-c", PEAK, str(path), str(folder)]
    return int(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)


def test_the_memory_for_sound_does_not_grow_with_its_length(tmp_path: Path) -> None:
    for seconds in (10, 120):
        (tmp_path / f"{seconds}.wav").write_bytes(wav(4_000, seconds, channels=2))
    short, long = (_peak(tmp_path / f"{s}.wav", tmp_path / str(s)) for s in (10, 120))
    assert long - short < 10


def test_a_packet_of_sound_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "x.m4a", Film([], tone=Fraction(1)))
    with pytest.raises(BadMedia, match="a packet of its audio"):
        probe(path, limits=Limits(audio_packet=50))


@pytest.mark.parametrize("kind", ["matroska", "flac"])
def test_a_file_with_thousands_of_tags_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if kind == "flac":
        path.write_bytes(flac(vorbis_comments(b"K%d=v" % n for n in range(3000))))
    else:
        in_segment(plain(tmp_path / "y.mkv", 1), matroska_tags(3000), path)
    with pytest.raises(BadMedia, match=r"tags, over the limit"):
        probe(path)


def test_a_header_that_takes_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_segment(plain(tmp_path / "y.mkv", 1), matroska_tags(12_000), tmp_path / "x.mkv")
    monkeypatch.setattr(budgets.Budget, "of", lambda size: Budget(0.1, size * 10))
    with pytest.raises(OverBudget, match="processor time"):
        probe(tmp_path / "x.mkv")


def test_waiting_costs_no_processor_time() -> None:
    def wait() -> str:
        time.sleep(0.5)
        return "there"

    assert run_within(Budget(0.15, 0), wait) == "there"


def test_a_file_that_fills_the_memory_is_refused() -> None:
    def fill() -> None:
        kept = [bytes(b"x" * (1 << 20)) for _ in range(200)]
        time.sleep(60)
        del kept

    with pytest.raises(OverBudget, match="of memory"):
        run_within(Budget(60, 0, memory=50 << 20), fill)


def test_an_error_within_the_time_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError):
        run_within(Budget(5, 0), lambda: dict[str, str]()["nothing"])


def test_a_file_that_is_read_again_and_again_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(1000))
    with (tmp_path / "x").open("rb") as file:
        reader = MeteredReader(file, Budget(10, 2500))
        for _ in range(2):
            reader.seek(0)
            assert len(reader.read(4096)) == 1000
        reader.seek(0)
        with pytest.raises(BadMedia, match="far more bytes than its size"):
            reader.read(4096)


def test_an_offset_before_the_beginning_is_an_answer_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(1000))
    with (tmp_path / "x").open("rb") as file:
        assert MeteredReader(file, Budget(10, 2500)).seek(-5) == -1


def test_what_a_probe_reads_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = plain(tmp_path / "x.mp4", 2, noise=30)
    monkeypatch.setattr(budgets.Budget, "of", lambda _size: Budget(60, 1000))
    with pytest.raises(BadMedia, match="far more bytes than its size"):
        probe(path)


def test_a_file_that_was_hardly_written_is_refused(tmp_path: Path) -> None:
    path = plain(tmp_path / "x.mp4", 1)
    os.truncate(path, 1 << 40)
    if path.stat().st_blocks * 512 > 1 << 30:
        pytest.skip("this disk has no sparse files")
    with pytest.raises(BadMedia, match="never written"):
        probe(path)


def test_a_long_title_is_cut(tmp_path: Path) -> None:
    title = probe(titled(tmp_path / "x.mkv", "long " * 200_000)).title
    assert title.startswith("long long")
    assert len(title) <= 300


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("A  film\nof two lines", "A film of two lines"),
        ("\u202egnp.exe\0\x1b[31m", "gnp.exe [31m"),
        ("é" * 999, "é" * 300),
    ],
)
def test_texts_of_files_are_kept_short_and_printable(given: str, kept: str) -> None:
    assert short_text(given) == kept


@pytest.mark.parametrize("language", ["x" * 100_000, "en\nus", "../../etc"])
def test_a_language_that_is_none_is_not_kept(language: str, tmp_path: Path) -> None:
    with av.open(str(tmp_path / "x.mkv"), "w") as out:
        stream = out.add_stream("pcm_s16le", rate=48000, layout="mono")
        stream.metadata["language"] = language
        frame = av.AudioFrame(format="s16", layout="mono", samples=4800)
        frame.rate, frame.pts, frame.time_base = 48000, 0, Fraction(1, 48000)
        out.mux(stream.encode(frame))
    assert probe(tmp_path / "x.mkv").audio[0].language == ""
