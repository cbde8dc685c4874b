"""Join: the 3D film as one verified file."""

from functools import partial

from rushes.domain.errors import TryAgain
from rushes.domain.stage import Scope, StageSpec
from rushes.media.joining.join import join
from rushes.media.joining.video import PieceFile
from rushes.media.stereo.ass import ass
from rushes.media.stereo.frame_packing import PACKINGS, StereoFormat
from rushes.stages.port import Work


class Join:
    """Joins the pieces of all chunks, with audio, chapters and subtitles of the original."""

    spec = StageSpec("join", 1, Scope.VIDEO, ("film",), needs=("probe", "stereo"), reads_source=True)

    def run(self, work: Work) -> None:
        """Save film.mp4, and film.ass if there are subtitles for two views; nothing where there are no pictures."""
        work.count("film", 0)
        pieces = [p for p in work.inputs("stereo", "stereo") if p.manifest.artifacts]
        if not pieces:
            return
        facts = [piece.manifest.facts for piece in pieces]
        parts = [
            PieceFile(partial(p.path, "piece.mp4"), f["start"], f["end"]) for p, f in zip(pieces, facts, strict=True)
        ]
        packing = PACKINGS[StereoFormat(facts[0]["format"])]
        out = work.temporary(".mp4")
        made = join(work.footage(), work.facts, parts, packing.layout, out, work.progress)
        if made.frames != sum(f["frames"] for f in facts):
            raise TryAgain(f"{made.frames} frames were joined, {sum(f['frames'] for f in facts)} were rendered")
        name = f"videos/3d/{work.video}/{facts[0]['format']}.mp4"
        work.save("film", "film.mp4", out, "video/mp4", name)
        if made.texts and packing.layout:
            work.save("film", "film.ass", ass(made.texts, packing).encode(), "text/x-ssa")
        sounds = [[s.numerator, s.denominator] for s in made.sounds]
        work.note("film", frames=made.frames, sounds=sounds, format=facts[0]["format"], name=packing.name)
        work.count("film", made.frames)


STAGE = Join()
