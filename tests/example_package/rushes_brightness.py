"""An example of a stage that is not ours: how bright each kept frame of a chunk is."""

from rushes.domain.stage import Scope, StageSpec
from rushes.stages.port import Work


class Brightness:
    """Reads the frame pack, so that the film is not decoded again."""

    spec = StageSpec(
        name="brightness",
        version=1,  # raise it when the bytes of the output change
        scope=Scope.CHUNK,
        needs=("probe", "develop"),
        outputs=("levels",),
        options={"digits": 2},
    )

    def run(self, work: Work) -> None:
        """One number per kept frame, by the frame's own time."""
        frames = work.input("develop", "frames").json("frames.json")
        digits = int(work.options["digits"])
        rows = [{"us": f["us"], "level": round(f["light"] / 255, digits)} for f in frames["frames"]]
        work.save_json("levels", "levels.json", rows)
        work.log(f"{len(rows)} frames looked at")


STAGE = Brightness()
