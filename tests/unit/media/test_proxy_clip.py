from fractions import Fraction
from pathlib import Path

import pytest

from rushes.domain.errors import BadMedia
from rushes.media.clips.clip import ProxyFiles, clip_from_proxy
from rushes.media.developing.hls import Segment, SegmentIndex
from rushes.media.reading.probe import probe as probe_film
from rushes.stages.audio import Audio
from rushes.stages.clip import Clip
from rushes.stages.develop import Develop
from rushes.stages.probe import Probe
from tests.unit.film_work import FilmWork, chunks, room_for_one
from tests.unit.media_files import Film, cfr, decoded, make, vfr

MS = Fraction(1, 1000)
FILMS = {
    "plain.mp4": Film(cfr(13), tone=Fraction(13), gop=40),
    "vfr.mkv": Film(vfr(13), base=MS),
    "late.mkv": Film(cfr(13, 25, MS, 1500), base=MS, tone=Fraction(13)),
}


@pytest.mark.parametrize("name", FILMS)
def test_a_clip_from_the_proxy_has_the_frames_of_one_from_the_original(name: str, tmp_path: Path) -> None:
    film = make(tmp_path / name, FILMS[name])
    work = FilmWork(film, tmp_path)
    work.run(Probe())
    for span in chunks(work.facts, 5):
        work.run(Develop(), span, wanted=["proxy"])
    if work.facts.audio:
        work.run(Audio(), wanted=["sound"])
    asked = {"start_us": 3_210_000, "end_us": 11_570_000, "padding_ms": 0}
    shown = []
    for source in ("original", "proxy"):
        work.run(Clip(), options=asked | {"source": source})
        made = work.made["clip.clip"][-1]
        shown.append((decoded(made.path("clip.mp4")), made.manifest.facts))
    (frames, facts), (proxied, proxy_facts) = shown
    assert proxied == frames
    assert {k: v for k, v in facts.items() if k != "copied"} == {k: v for k, v in proxy_facts.items() if k != "copied"}
    assert proxy_facts["copied"] > 50


def test_a_clip_asks_for_the_pieces_it_touches_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = FilmWork(make(tmp_path / "plain.mp4", FILMS["plain.mp4"]), tmp_path)
    work.run(Probe())
    for span in chunks(work.facts, 3):
        work.run(Develop(), span, wanted=["proxy"])
    asked = room_for_one(monkeypatch)
    work.run(Clip(), options={"start_us": 3_000_000, "end_us": 7_000_000, "padding_ms": 0, "source": "proxy"})
    assert len(work.made["develop.proxy"]) == 3
    pieces = [piece.manifest.artifact("piece.mp4").sha256 for piece in work.made["develop.proxy"]]
    assert [sha256 for sha256 in asked if sha256 in pieces] == pieces[:2]
    assert work.made["clip.clip"][0].manifest.facts["frames"] == 100


def test_a_proxy_that_is_cut_off_is_told(tmp_path: Path) -> None:
    facts = probe_film(make(tmp_path / "film.mp4", FILMS["plain.mp4"]))
    piece = tmp_path / "piece.mp4"
    piece.write_bytes(b"only its head")
    pictures = [(piece, SegmentIndex(4, MS, (Segment(start=0, duration=5000, offset=4, length=100),)))]
    with pytest.raises(BadMedia, match="ends too early"):
        clip_from_proxy(
            ProxyFiles(pictures, []), facts, (Fraction(1), Fraction(2)), tmp_path, tmp_path / "out.mp4", print
        )
