"""Join: the film in 3D as one file."""

from rushes.domain.errors import TryAgain
from rushes.domain.stage import Scope, StageSpec
from rushes.domain.stereo_keys import final_key, output_key
from rushes.media.joining.join import join
from rushes.media.joining.packets import PieceFile
from rushes.media.stereo.frame_packing import PACKINGS, StereoFormat, ass
from rushes.stages.port import Work


class Join:
    """Puts the pieces of all chunks in the order of the plan, with sound, chapters and subtitles of the original."""

    spec = StageSpec(
        "join",
        2,
        Scope.VIDEO,
        ("film", "segments"),
        needs=("probe", "stereo"),
        reads_source=True,
        intermediate=("segments",),
        per_job=True,
    )

    def run(self, work: Work) -> None:
        """Save film.mp4, and film.ass if there are subtitles for two views; nothing where there are no pictures.

        Film and pieces also get the names by which other tools find those of a job.
        """
        work.count("film", 0)
        work.count("segments", 0)
        pieces = [p for p in work.inputs("stereo", "stereo") if p.manifest.artifacts]
        if not pieces:
            return
        facts = [piece.manifest.facts for piece in pieces]
        both = zip(pieces, facts, strict=True)
        parts = [PieceFile(p.file("piece.mp4"), f["start"], f["end"]) for p, f in both]
        look = PACKINGS[StereoFormat(facts[0]["format"])]
        out = work.temporary(".mp4")
        made = join(work.footage(), work.facts, parts, look.layout, out, work.progress)
        if made.frames != sum(f["frames"] for f in facts):
            raise TryAgain(f"{made.frames} frames were joined, {sum(f['frames'] for f in facts)} were made")
        name = f"videos/3d/{work.video}/{facts[0]['format']}.mp4"
        film = work.save("film", "film.mp4", out, "video/mp4", name)
        work.refer("film", film, "final.mp4", final_key(work.job))
        for n, piece in enumerate(pieces):
            work.refer("segments", piece.manifest.artifact("piece.mp4"), f"{n}.mp4", output_key(work.job, n))
        if made.texts and look.layout:
            work.save("film", "film.ass", ass(made.texts, look).encode(), "text/x-ssa")
        sounds = [[s.numerator, s.denominator] for s in made.sounds]
        work.note("film", frames=made.frames, sounds=sounds, format=facts[0]["format"], name=look.name)
        work.count("film", made.frames)
