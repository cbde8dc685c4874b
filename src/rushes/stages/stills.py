"""Stills: every kept frame as a file, under the name that other programs expect."""

from rushes.domain.stage import Scope, StageSpec
from rushes.media.developing.frame_pack import PackIndex, read_frame
from rushes.stages.port import Work
from rushes.stages.vision.samples import FRAMES


class Stills:
    """Publishes the frames of a chunk as `frames/{video}/{milliseconds}.jpg`, in film time."""

    spec = StageSpec("stills", 1, Scope.CHUNK, ("stills",), FRAMES)

    def run(self, work: Work) -> None:
        """Save a JPEG for each; of two in one millisecond the first."""
        pack, zero = work.input("develop", "frames"), work.facts.start * 1_000_000
        work.count("stills", 0)
        if not pack.manifest.artifacts:
            return
        kept = {
            int(frame.us - zero) // 1000: frame
            for frame in reversed(PackIndex.from_json(pack.json("frames.json")).frames)
        }
        with pack.open("frames.pack") as file:
            for ms, frame in sorted(kept.items()):
                name = f"{ms}.jpg"
                work.save("stills", name, read_frame(file, frame), "image/jpeg", f"frames/{work.video}/{name}")
        work.note("stills", frames=len(kept))
