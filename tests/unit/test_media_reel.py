from fractions import Fraction
from pathlib import Path

import pytest
from film_work import FilmWork, chunks
from media_files import Film, cfr, decoded, make, vfr

from rushes.stages import audio, clip, develop, probe

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
    work.run(probe.STAGE)
    for span in chunks(work.facts, 5):
        work.run(develop.STAGE, span, wanted=["proxy"])
    if work.facts.audio:
        work.run(audio.STAGE, wanted=["sound"])
    asked = {"start_us": 3_210_000, "end_us": 11_570_000, "padding_ms": 0}
    shown = []
    for source in ("original", "proxy"):
        work.run(clip.STAGE, options=asked | {"source": source})
        made = work.made["clip.clip"][-1]
        shown.append((decoded(made.path("clip.mp4")), made.manifest.facts))
    (frames, facts), (proxied, proxy_facts) = shown
    assert proxied == frames
    assert {k: v for k, v in facts.items() if k != "copied"} == {k: v for k, v in proxy_facts.items() if k != "copied"}
    assert proxy_facts["copied"] > 50
