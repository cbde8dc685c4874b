import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
import simplejpeg

from rushes.media.clips.clip import cut_clip
from rushes.media.developing.frame_pack import FramePackWriter, read_frame
from rushes.media.developing.proxy import ProxyWriter
from rushes.media.reading.frames import develop
from rushes.media.reading.probe import probe
from rushes.media.reading.scaling import Light, ToneMapper, _hlg_eotf, _pq_eotf

PQ, HLG = 16, 18
LEVELS = (0.0, 0.25, 0.58, 0.75)  # coded light; 0.58 is paper white in PQ, 0.75 in HLG


def hdr_film(path: Path, transfer: int) -> Path:
    """Ten frames of four gray bars, coded for HDR screens in ten bits."""
    bars = np.repeat(np.array([64 + round(level * 876) for level in LEVELS], np.uint16), 40)
    picture = np.full((90 * 3 // 2, 160), 512, np.uint16)
    picture[:90] = bars
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx265", rate=25, options={"preset": "ultrafast", "x265-params": "log-level=none"})
        stream.width, stream.height, stream.pix_fmt = 160, 90, "yuv420p10le"
        context = stream.codec_context
        context.color_primaries, context.color_trc, context.colorspace, context.color_range = 9, transfer, 9, 1
        for number in range(10):
            frame = av.VideoFrame.from_ndarray(picture, format="yuv420p10le")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path


@pytest.mark.parametrize(("transfer", "white"), [(PQ, 2), (HLG, 3)])
def test_hdr_is_shown_as_an_sdr_screen_can(transfer: int, white: int, tmp_path: Path) -> None:
    path = hdr_film(tmp_path / "x.mp4", transfer)
    facts = probe(path)
    assert facts.video
    proxy, pack = (
        ProxyWriter(tmp_path / "p.mp4", facts, facts.video.span),
        FramePackWriter(tmp_path / "pack", facts.video),
    )
    develop(path, facts, facts.video.span, [proxy, pack], lambda _: None)
    proxy.finish()
    index = pack.finish()
    cut_clip(path, facts, Fraction(0), Fraction(1), tmp_path / "c.mp4", lambda _: None)
    with (tmp_path / "pack").open("rb") as file:
        kept = simplejpeg.decode_jpeg(read_frame(file, index.frames[0])).astype(int)
    shown = [kept[45, n * 40 + 20] for n in range(4)]
    for name in ("p.mp4", "c.mp4"):
        with av.open(str(tmp_path / name)) as container:
            frame = next(container.decode(video=0))
            assert (int(frame.color_trc), int(frame.color_primaries), int(frame.colorspace)) == (1, 1, 1)
            picture = frame.to_ndarray(format="rgb24").astype(int)
        assert np.abs(np.array([picture[45, n * 40 + 20] for n in range(4)]) - shown).max() < 12
    grays = [int(colour.mean()) for colour in shown]
    assert grays == sorted(grays)
    assert grays[0] < 6
    assert 170 < grays[white] < 225  # white leaves room for what is brighter
    assert max(int(np.ptp(colour)) for colour in shown) < 8  # gray stays gray


def test_a_folder_with_an_odd_name_and_a_film_that_changes_its_coding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "it's: [a], 'b' c\\d;=%"
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    frames = []
    for transfer in (PQ, HLG):
        with av.open(str(hdr_film(tmp_path / f"{transfer}.mp4", transfer))) as container:
            frames.append(next(container.decode(video=0)))
    one = ToneMapper((160, 90), "rgb24")
    together = [one.map(frame).to_ndarray() for frame in (*frames, *frames)]
    alone = [ToneMapper((160, 90), "rgb24").map(frame).to_ndarray() for frame in (*frames, *frames)]
    assert all(np.array_equal(a, b) for a, b in zip(together, alone, strict=True))
    assert not np.array_equal(alone[0], alone[1])


@pytest.mark.parametrize(
    ("light", "coded", "candela"),
    [
        (_hlg_eotf, 1.0, 1000.0),
        (_hlg_eotf, 0.75, 203.0),
        (_hlg_eotf, 0.5, 1000 * (1 / 12) ** 1.2),
        (_hlg_eotf, 0.0, 0.0),
        (_pq_eotf, 1.0, 10_000.0),
        (_pq_eotf, 0.58, 201.7),
        (_pq_eotf, 0.0, 0.0),
    ],
)
def test_coded_light_is_as_bright_as_the_standards_say(
    light: Callable[[Light], Light], coded: float, candela: float
) -> None:
    assert light(np.full((1, 3), coded))[0].tolist() == pytest.approx([candela] * 3, rel=2e-3, abs=1e-9)
