"""A preview of a film whose last picture stays, as slides do."""

from pathlib import Path

import av
import pytest

from rushes.engines.stub import StubEngine
from rushes.stages.preview import FRAMES, Preview
from rushes.stages.probe import Probe
from tests.unit.film_work import FilmWork
from tests.unit.media_files import Film, cfr, make


def lasting(path: Path, seconds: int) -> Path:
    """Two seconds of film, whose last picture then stays."""
    film = make(path.with_name("short.mp4"), Film(cfr(2, rate=8), rate=8, gop=8, bframes=0))
    with av.open(str(film)) as source, av.open(str(path), "w") as out:
        stream = out.add_stream_from_template(source.streams.video[0])
        packets = [packet for packet in source.demux(video=0) if packet.dts is not None]
        packets[-1].duration = seconds * 12800
        for packet in packets:
            packet.stream = stream
            out.mux(packet)
    return path


def test_moments_after_the_last_picture_show_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = FilmWork(lasting(tmp_path / "x.mp4", 10), tmp_path, engine=StubEngine(), models={"depth": "stub"})
    work.run(Probe())
    assert work.run(Preview())["preview"].facts["frames"] == FRAMES
