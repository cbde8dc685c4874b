from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from rushes.domain.errors import NeverWorks
from rushes.media.clips.captions import add_track, burn_in, crop_cues
from rushes.media.clips.clip import cut_clip
from rushes.media.reading.probe import probe
from rushes.media.subtitles import Cue
from tests.unit.media_files import Film, cfr, decoded, make, vfr

CUES = [Cue(200, 1400, ("Grüße aus Łódź, it's <fine>",)), Cue(1600, 2600, ("{two", "lines"))]
FILMS = {
    "cfr.mp4": Film(cfr(4), tone=Fraction(4)),
    "vfr.mkv": Film(vfr(5), base=Fraction(1, 1000)),
}


@pytest.mark.parametrize("name", FILMS)
def test_times_and_frames_stay_as_they_are(name: str, tmp_path: Path) -> None:
    path, cut = make(tmp_path / name, FILMS[name]), tmp_path / "clip.mp4"
    cut_clip(path, probe(path), Fraction(1, 2), Fraction(7, 2), cut, lambda _: None)
    add_track(cut, CUES, "de", tmp_path, tmp_path / "muxed.mp4")
    burn_in(cut, CUES, 20, tmp_path, tmp_path / "burnt.mp4")
    assert decoded(tmp_path / "muxed.mp4") == decoded(cut)
    assert decoded(tmp_path / "burnt.mp4") == decoded(cut)
    with av.open(str(tmp_path / "muxed.mp4")) as container:
        (text,) = container.streams.subtitles
        assert text.codec_context.name == "mov_text"
        assert sum(1 for p in container.demux(text) if p.size > 2) == 2


def test_text_is_in_the_picture_while_it_is_said_and_only_then(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(2), size=(320, 180), still=True))
    burn_in(path, [Cue(400, 1200, ("MMMMMMMMMM",))], 16, tmp_path, tmp_path / "out.mp4")
    pictures = []
    for file in (path, tmp_path / "out.mp4"):
        with av.open(str(file)) as container:
            pictures.append([f.to_ndarray(format="gray").astype(int) for f in container.decode(video=0)])
    apart = [np.abs(a - b)[100:].mean() for a, b in zip(*pictures, strict=True)]
    assert min(apart[10:30]) > 3 * max(*apart[:9], *apart[31:])


def test_the_same_subtitles_give_the_same_bytes(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(1), tone=Fraction(1)))
    made = []
    for name in ("a.mp4", "b.mp4"):
        burn_in(path, CUES, 20, tmp_path, tmp_path / name)
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1]


def test_no_font_of_the_machine_is_used_and_what_ours_lacks_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "x.mp4", Film(cfr(1), size=(320, 180)))
    with pytest.raises(NeverWorks, match="the bundled font has no glyphs for \u05dc \u05e9") as refused:
        burn_in(path, [Cue(0, 1000, ("Hi \u05e9\u05dc",))], 20, tmp_path, tmp_path / "out.mp4")
    assert "as a track" in refused.value.advice


def test_cues_move_with_the_clip() -> None:
    assert crop_cues(CUES, 1000, 1000) == [Cue(0, 400, CUES[0].lines), Cue(600, 1000, CUES[1].lines)]
    assert crop_cues(CUES, 5000, 1000) == []
