from fractions import Fraction
from pathlib import Path

import pytest
import simplejpeg

from rushes.domain.errors import BadMedia
from rushes.media.developing.cut_metrics import CutMetrics
from rushes.media.developing.frame_pack import PackIndex, read_frame
from rushes.media.developing.hls import SegmentIndex
from rushes.stages.develop import Develop
from rushes.stages.probe import Probe
from tests.unit.film_work import FilmWork, chunks
from tests.unit.media_files import Film, cfr, make, plain


def test_all_outputs_of_a_chunk_are_saved_with_what_a_reader_needs(tmp_path: Path) -> None:
    work = FilmWork(plain(tmp_path / "x.mp4", 6), tmp_path)
    work.run(Probe())
    saved = work.run(Develop(), chunks(work.facts, 5)[0])
    assert {o: [a.name for a in s.artifacts] for o, s in saved.items()} == {
        "proxy": ["piece.mp4"],
        "frames": ["frames.pack", "frames.json"],
        "metrics": ["metrics.bin"],
    }
    layout = SegmentIndex.from_json(saved["proxy"].facts)
    assert layout.segments[-1].offset + layout.segments[-1].length == saved["proxy"].artifacts[0].size
    assert saved["proxy"].facts["codec"].startswith("avc1.64")
    frames = work.made["develop.frames"][0]
    index = PackIndex.from_json(frames.json("frames.json"))
    assert saved["frames"].count == len(index.frames)
    with frames.path("frames.pack").open("rb") as pack:
        assert simplejpeg.decode_jpeg(read_frame(pack, index.frames[0])).shape == (108, 192, 3)
    metrics = CutMetrics.from_bytes(work.made["develop.metrics"][0].bytes("metrics.bin"))
    assert len(metrics.pts) == saved["metrics"].count == 125


def test_outputs_that_exist_are_left_out_of_the_pass_and_change_nothing(tmp_path: Path) -> None:
    work = FilmWork(plain(tmp_path / "x.mp4", 2), tmp_path)
    work.run(Probe())
    (span,) = chunks(work.facts, 60)
    whole = work.run(Develop(), span)
    for output in Develop().spec.outputs:
        alone = work.run(Develop(), span, wanted=[output])
        assert list(alone) == [output]
        assert alone[output].artifacts == whole[output].artifacts


def test_the_height_can_be_chosen(tmp_path: Path) -> None:
    work = FilmWork(plain(tmp_path / "x.mp4", 1), tmp_path)
    work.run(Probe())
    saved = work.run(Develop(), chunks(work.facts, 60)[0], wanted=["proxy"], options={"height": 54})
    assert (saved["proxy"].facts["width"], saved["proxy"].facts["height"]) == (96, 54)


def test_damaged_pictures_do_not_stop_a_chunk_and_are_told(tmp_path: Path) -> None:
    film = make(tmp_path / "x.mp4", Film(cfr(3), noise=40))
    work = FilmWork(film, tmp_path)
    work.run(Probe())
    _spoil(film, 3000)
    saved = work.run(Develop(), chunks(work.facts, 60)[0])
    assert saved["proxy"].facts["hidden_us"] == saved["frames"].facts["hidden_us"] != []
    assert any("cannot be decoded" in line for line in work.said)


def test_a_chunk_that_is_mostly_lost_is_refused_and_saves_nothing(tmp_path: Path) -> None:
    film = make(tmp_path / "x.mp4", Film(cfr(3), noise=40))
    work = FilmWork(film, tmp_path)
    work.run(Probe())
    _spoil(film, film.stat().st_size // 2, 1)
    with pytest.raises(BadMedia, match="the frame at"):
        work.run(Develop(), chunks(work.facts, 60)[0])
    assert not any(name.startswith("develop") for name in work.made)


def _spoil(film: Path, size: int, step: int = 7) -> None:
    data = bytearray(film.read_bytes())
    middle = data.index(b"mdat") + len(data) // 3
    for i in range(middle, middle + size, step):
        data[i] ^= 0x55
    film.write_bytes(data)


def test_sound_alone_gives_empty_outputs(tmp_path: Path) -> None:
    work = FilmWork(make(tmp_path / "x.m4a", Film([], tone=Fraction(1))), tmp_path)
    work.run(Probe())
    saved = work.run(Develop())
    assert set(saved) == {"proxy", "frames", "metrics"}
    assert not any(s.artifacts for s in saved.values())
