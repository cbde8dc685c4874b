import hashlib
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import av
import numpy as np
import pytest
import simplejpeg

from rushes.domain.span import Span
from rushes.domain.video import VideoFacts
from rushes.media.developing.cut_metrics import CutMetrics, CutMetricsRecorder, join_metrics
from rushes.media.developing.frame_pack import FramePackWriter, PackIndex, read_frame
from rushes.media.developing.hls import SegmentIndex, peak_bandwidth
from rushes.media.developing.proxy import ProxyWriter
from rushes.media.developing.trickplay import choose_poster
from rushes.media.reading.frames import develop
from rushes.media.reading.probe import probe
from rushes.media.timeline import shift_seconds
from tests.unit.film_work import chunks
from tests.unit.media_files import Film, cfr, decoded, make, number_of, plain, vfr

TS = Fraction(1, 90000)
MS = Fraction(1, 1000)
FILMS = {
    "cfr.mp4": Film(cfr(11)),
    "ntsc.mp4": Film([i * 1001 for i in range(255)], base=Fraction(1, 24000), rate=Fraction(24000, 1001)),
    "vfr.mkv": Film(vfr(11), base=MS),
    "late.mkv": Film(cfr(11, 25, MS, 1500), base=MS),
    "negative.ts": Film(cfr(11, 25, TS, 2**33 - 180000), base=TS),
    "rotated.mp4": Film(cfr(6), rotation=180),
    "slow.mp4": Film([i * 12800 * 20 for i in range(12)], rate=1, gop=2),  # one frame every 20 seconds
}


@dataclass
class Developed:
    layouts: list[SegmentIndex]
    pieces: list[Path]
    packs: list[PackIndex]
    metrics: list[CutMetrics]


def developed(path: Path, facts: VideoFacts, spans: list[Span], folder: Path) -> Developed:
    folder.mkdir(exist_ok=True)
    done = Developed([], [], [], [])
    assert facts.video
    for n, span in enumerate(spans):
        piece = folder / f"{n}.mp4"
        measure, pack, proxy = (
            CutMetricsRecorder(facts.video),
            FramePackWriter(folder / f"{n}.pack", facts.video),
            ProxyWriter(piece, facts, span),
        )
        develop(path, facts, span, [measure, pack, proxy], lambda _: None)
        done.layouts.append(proxy.finish())
        done.packs.append(pack.finish())
        done.metrics.append(measure.finish())
        done.pieces.append(piece)
    return done


def two_second_chunks(facts: VideoFacts, times: list[int]) -> list[Span]:
    """Finer than any plan makes them, and not at key frames."""
    track = facts.video
    assert track
    bounds = [track.start]
    for pts in times:
        if (pts - bounds[-1]) * track.base >= 2:
            bounds.append(pts)
    return [Span(a, b, track.base) for a, b in pairwise([*bounds, track.end])]


@pytest.mark.parametrize("name", [n for n in FILMS if n != "slow.mp4"])
@pytest.mark.parametrize("seconds", [2, 5, 20])
def test_proxy_frames_and_times_equal_the_source_on_every_grid(name: str, seconds: int, tmp_path: Path) -> None:
    path = make(tmp_path / name, FILMS[name])
    facts = probe(path)
    assert facts.video
    spans = two_second_chunks(facts, [pts for pts, _ in decoded(path)]) if seconds == 2 else chunks(facts, seconds)
    shift = shift_seconds(facts)
    got = []
    for piece in developed(path, facts, spans, tmp_path / "out").pieces:
        got += [(time - shift, number_of(frame)) for frame, time in _frames(piece)]
    flipped = facts.video.rotation == 180
    want = [(pts * facts.video.base, number) for pts, number in decoded(path)]
    assert [t for t, _ in got] == [t for t, _ in want]
    assert flipped or [n for _, n in got] == [n for _, n in want]


def _frames(path: Path) -> Iterator[tuple[av.VideoFrame, Fraction]]:
    """Frames and their times in seconds."""
    with av.open(str(path)) as container:
        base = container.streams.video[0].time_base
        assert base
        for frame in container.decode(video=0):
            assert frame.pts is not None
            yield frame, frame.pts * base


def test_every_segment_begins_with_a_key_frame_and_plays_with_the_header_of_another_chunk(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", FILMS["ntsc.mp4"])
    facts = probe(path)
    assert facts.video
    done = developed(path, facts, chunks(facts, 5), tmp_path / "out")
    first = done.pieces[0].read_bytes()[: done.layouts[0].init]
    seen = []
    for layout, piece in zip(done.layouts, done.pieces, strict=True):
        data = piece.read_bytes()
        assert data[: layout.init] == first
        for segment in layout.segments:
            alone = tmp_path / "alone.mp4"
            alone.write_bytes(first + data[segment.offset : segment.offset + segment.length])
            frames = list(_frames(alone))
            assert frames[0][0].key_frame
            assert frames[0][1] - shift_seconds(facts) == segment.start * facts.video.base
            seen += [number_of(f) for f, _ in frames]
    assert seen == list(range(255))
    assert sum(s.duration for lay in done.layouts for s in lay.segments) == facts.video.end - facts.video.start


@pytest.mark.parametrize("film", [FILMS["ntsc.mp4"], Film(vfr(4), base=Fraction(1, 1000)), Film([0], gop=1)])
def test_nothing_of_a_chunk_is_decoded_before_its_first_picture_nor_over_too_soon(film: Film, tmp_path: Path) -> None:
    path = make(tmp_path / "x.mkv", film)
    facts = probe(path)
    assert facts.video
    for piece in developed(path, facts, [facts.video.span], tmp_path / "out").pieces:
        with av.open(str(piece)) as container:
            packets = [p for p in container.demux(video=0) if p.size]
        shown = sorted(p.pts or 0 for p in packets)
        assert packets[0].dts == packets[0].pts == shown[0]
        assert all((p.dts or 0) <= (p.pts or 0) for p in packets)  # FFmpeg takes negative offsets for a shift of all
        steps = [b - a for a, b in pairwise(shown)]
        assert all(3 * (p.duration or 0) >= min(steps) - 3 for p in packets[: len(steps)])


def test_segments_begin_at_multiples_of_four_seconds(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", FILMS["cfr.mp4"])
    facts = probe(path)
    assert facts.video
    (layout,) = developed(path, facts, chunks(facts, 60), tmp_path / "out").layouts
    assert [s.start * facts.video.base for s in layout.segments] == [0, 4, 8]


def test_frames_far_apart_do_not_make_negative_times(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", FILMS["slow.mp4"])
    facts = probe(path)
    assert facts.video
    done = developed(path, facts, [facts.video.span], tmp_path / "out")
    got = [time - shift_seconds(facts) for piece in done.pieces for _, time in _frames(piece)]
    assert got == [i * 20 for i in range(12)]


@pytest.mark.parametrize("written", [-90, 90, 180])
def test_a_turned_film_is_shown_upright(written: int, tmp_path: Path) -> None:
    film = Film(cfr(1), rotation=written)
    path = make(tmp_path / "x.mp4", film)
    facts = probe(path)
    assert facts.video
    done = developed(path, facts, [facts.video.span], tmp_path / "out")
    turns = {-90: -1, 90: 1, 180: 2}[written]
    with av.open(str(path)) as container:
        upright = np.rot90(next(container.decode(video=0)).to_ndarray(format="gray"), turns)
    proxy = next(_frames(done.pieces[0]))[0].to_ndarray(format="gray")
    with (tmp_path / "out" / "0.pack").open("rb") as pack:
        kept = simplejpeg.decode_jpeg(read_frame(pack, done.packs[0].frames[0]), "GRAY")[:, :, 0]
    for shown in (proxy, kept):
        assert shown.shape == upright.shape
        assert np.abs(shown.astype(int) - upright).mean() < 8


def test_wide_pixels_are_shown_square(tmp_path: Path) -> None:
    path = plain(tmp_path / "x.mp4", 1, sar=Fraction(4, 3))
    facts = probe(path)
    assert facts.video
    done = developed(path, facts, [facts.video.span], tmp_path / "out")
    assert (done.packs[0].width, done.packs[0].height) == (256, 108)
    assert next(_frames(done.pieces[0]))[0].width == 256


def test_large_pictures_are_shown_at_720_lines_and_odd_sizes_made_even(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(0.2), size=(1920, 1080)))
    facts = probe(path)
    assert facts.video
    done = developed(path, facts, [facts.video.span], tmp_path / "out")
    frame = next(_frames(done.pieces[0]))[0]
    assert (frame.width, frame.height) == (1280, 720)
    odd = replace(facts.video, width=853, height=479)
    assert ProxyWriter(tmp_path / "odd.mp4", replace(facts, video=odd), odd.span).size == (852, 480)


GRIDS = (5, 20, 60)


def test_kept_frames_and_metrics_do_not_depend_on_the_grid(tmp_path: Path) -> None:
    film = Film(cfr(31), gop=40, cuts=[60, 200, 201, 333, 520, 700], size=(192, 64))
    path = make(tmp_path / "x.mp4", film)
    facts = probe(path)
    results = []
    for seconds in GRIDS:
        done = developed(path, facts, chunks(facts, seconds), tmp_path / str(seconds))
        pictures = []
        for n, index in enumerate(done.packs):
            with (tmp_path / str(seconds) / f"{n}.pack").open("rb") as pack:
                pictures += [
                    (k.pts, k.hash, k.sharp, hashlib.sha256(read_frame(pack, k)).hexdigest()) for k in index.frames
                ]
        results.append((pictures, join_metrics(done.metrics).to_bytes()))
    assert len(chunks(facts, 5)) > len(chunks(facts, 20)) > len(chunks(facts, 60))
    assert results[0] == results[1] == results[2]
    assert 7 < len(results[0][0]) < 310


@pytest.mark.parametrize("seconds", GRIDS)
def test_a_picture_that_never_changes_is_kept_once_every_five_seconds(seconds: int, tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(31), gop=40, still=True))  # a key frame every 1.6 seconds
    facts = probe(path)
    done = developed(path, facts, chunks(facts, seconds), tmp_path / "out")
    assert [k.us for index in done.packs for k in index.frames] == [
        0,
        6_400_000,
        11_200_000,
        16_000_000,
        20_800_000,
        25_600_000,
        30_400_000,
    ]


def test_metrics_of_chunks_shorter_than_the_look_back_join_exactly(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(2), cuts=[10, 30]))
    facts = probe(path)
    assert facts.video
    step = 512
    tiny = [Span(t, t + 3 * step, facts.video.base) for t in range(0, 50 * step, 3 * step)]
    parts = []
    for span in [facts.video.span, *tiny]:
        measure = CutMetricsRecorder(facts.video)
        develop(path, facts, span, [measure], lambda _: None)
        parts.append(measure.finish())
    assert join_metrics(parts[1:]).to_bytes() == join_metrics(parts[:1]).to_bytes() == parts[0].to_bytes()
    assert CutMetrics.from_bytes(parts[0].to_bytes()).to_bytes() == parts[0].to_bytes()


def test_sampling_takes_the_first_frame_at_or_after_each_tenth_of_a_second(tmp_path: Path) -> None:
    film = Film(cfr(1, 50, Fraction(1, 12800)), rate=50, cuts=list(range(50)))  # every frame is new
    path = make(tmp_path / "x.mp4", film)
    facts = probe(path)
    assert facts.video
    (index,) = developed(path, facts, [facts.video.span], tmp_path / "out").packs
    assert [k.us for k in index.frames] == [n * 100_000 for n in range(10)]


def test_a_frame_that_shows_nothing_new_is_dropped(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film([i * 512 for i in range(100)], cuts=[50], gop=100))
    facts = probe(path)
    assert facts.video
    (index,) = developed(path, facts, [facts.video.span], tmp_path / "out").packs
    assert len(index.frames) < 20
    assert 2_000_000 in [k.us for k in index.frames]


_CHILD = """
import hashlib, sys
from itertools import pairwise
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from tests.unit.media.test_develop import developed
from rushes.media.reading.probe import probe
path, out = Path(sys.argv[1]), Path(sys.argv[2])
facts = probe(path)
developed(path, facts, [facts.video.span], out)
for file in sorted(out.iterdir()):
    print(file.name, hashlib.sha256(file.read_bytes()).hexdigest())
"""


def test_bytes_are_the_same_from_run_to_run_and_in_another_process(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(5), noise=20, size=(320, 180)))
    runs = []
    for n in range(2):
        kit = str(Path(__file__).parents[3])
        command = [sys.executable, "-c", _CHILD, str(path), str(tmp_path / f"run{n}"), kit]
        runs.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    facts = probe(path)
    assert facts.video
    developed(path, facts, [facts.video.span], tmp_path / "here")
    here = [f"{f.name} {hashlib.sha256(f.read_bytes()).hexdigest()}" for f in sorted((tmp_path / "here").iterdir())]
    assert runs[0] == runs[1]
    assert runs[0].splitlines() == here


def test_what_is_made_does_not_depend_on_what_else_is_made(tmp_path: Path) -> None:
    path = plain(tmp_path / "x.mp4", 3, size=(320, 180))
    facts = probe(path)
    assert facts.video
    all_of_it = developed(path, facts, [facts.video.span], tmp_path / "all")
    pack, proxy = (
        FramePackWriter(tmp_path / "pack", facts.video),
        ProxyWriter(tmp_path / "piece.mp4", facts, facts.video.span),
    )
    measure = CutMetricsRecorder(facts.video)
    for sink in (proxy, pack, measure):
        develop(path, facts, facts.video.span, [sink], lambda _: None)
        sink.finish()
    assert (tmp_path / "pack").read_bytes() == (tmp_path / "all" / "0.pack").read_bytes()
    assert (tmp_path / "piece.mp4").read_bytes() == all_of_it.pieces[0].read_bytes()
    assert measure.finish().to_bytes() == all_of_it.metrics[0].to_bytes()


def test_a_change_of_size_inside_a_film_is_lived_with(tmp_path: Path) -> None:
    base = Fraction(1, 90000)
    make(tmp_path / "a.ts", Film(cfr(2, 25, base, 900000), base=base))
    make(tmp_path / "b.ts", Film(cfr(2, 25, base, 900000 + 2 * 90000), base=base, size=(256, 144)))
    path = tmp_path / "glued.ts"
    path.write_bytes((tmp_path / "a.ts").read_bytes() + (tmp_path / "b.ts").read_bytes())
    facts = probe(path)
    assert facts.video
    done = developed(path, facts, [facts.video.span], tmp_path / "out")
    frames = [f for f, _ in _frames(done.pieces[0])]
    assert len(frames) == len(decoded(path))
    assert {(f.width, f.height) for f in frames} == {(192, 108)}


def test_the_poster_is_neither_black_nor_blurred(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(4), cuts=[25, 50, 75]))
    facts = probe(path)
    assert facts.video
    (index,) = developed(path, facts, [facts.video.span], tmp_path / "out").packs
    dark = replace(index, frames=tuple(replace(k, light=3, sharp=5) for k in index.frames))
    chosen = choose_poster([dark, index])
    assert chosen
    assert chosen[0] == 1
    assert choose_poster([]) is None


def test_the_heaviest_second_says_how_much_a_player_must_load() -> None:
    segments = [SimpleNamespace(length=1000, duration=n * 90000) for n in (2, 4, 0)]
    part = SimpleNamespace(layout=SimpleNamespace(base=Fraction(1, 90000), segments=segments))
    assert peak_bandwidth(cast(Any, [part])) == 4001
    assert peak_bandwidth([]) == 2


@pytest.mark.parametrize(
    ("times", "packets", "at"),
    [([0, 3], 0, 0), ([0, 300], 1, 100), ([0, 300, 600], 2, 200), ([7], 0, 7), ([7], 1, 7)],
)
def test_packets_are_decoded_within_the_time_of_the_first_picture(times: list[int], packets: int, at: int) -> None:
    writer = SimpleNamespace(_packets=packets, _times=deque(times))
    assert ProxyWriter._decoded_at(cast(Any, writer)) == at
