from pathlib import Path

import simplejpeg

from rushes.media.developing.frame_pack import PackIndex
from rushes.stages.develop import Develop
from rushes.stages.probe import Probe
from rushes.stages.stills import Stills
from tests.unit.film_work import FilmWork
from tests.unit.media_files import plain


def develop(tmp_path: Path, seconds: int = 3, **options: float) -> tuple[FilmWork, PackIndex]:
    work = FilmWork(plain(tmp_path / "x.mp4", seconds), tmp_path)
    work.run(Probe())
    assert work.facts.video
    work.run(Develop(), work.facts.video.span, wanted=["frames"], options=options)
    return work, PackIndex.from_json(work.made["develop.frames"][0].json("frames.json"))


def test_every_kept_frame_is_published_by_its_time(tmp_path: Path) -> None:
    work, pack = develop(tmp_path)
    saved = work.run(Stills(), work.facts.video.span if work.facts.video else None)["stills"]
    times = [frame.us // 1000 for frame in pack.frames]
    folder = str(saved.artifacts[0].publish).rpartition("/")[0]
    assert folder.startswith("frames/vid_")
    assert [a.publish for a in saved.artifacts] == [f"{folder}/{ms}.jpg" for ms in times]
    assert saved.facts["frames"] == len(times) > 1
    with work.blobs.open("me", saved.artifacts[1].sha256) as file:
        assert simplejpeg.decode_jpeg(file.read()).shape == (108, 192, 3)


def test_fewer_samples_and_a_looser_threshold_keep_fewer_frames(tmp_path: Path) -> None:
    _, usual = develop(tmp_path)
    _, sparse = develop(tmp_path, target_fps=1)
    _, none_alike = develop(tmp_path, dedupe_threshold=0.0)
    _, all_kept = develop(tmp_path, dedupe_threshold=1.0)
    assert [frame.us for frame in sparse.frames] == [0, 1_000_000, 2_000_000]
    assert len(none_alike.frames) == 1
    assert len(all_kept.frames) == 30 >= len(usual.frames) > len(sparse.frames)
