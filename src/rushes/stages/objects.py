"""Objects: things of known classes in the kept frames of a chunk."""

from rushes.domain.observation import MEDIA_TYPE, Observation, dump
from rushes.domain.stage import Scope, StageSpec
from rushes.stages.port import Work
from rushes.stages.sight.boxes import CONFIDENCE, box
from rushes.stages.sight.looks import looks


class Objects:
    """Things in pictures, frame by frame."""

    spec = StageSpec(
        "objects",
        1,
        Scope.CHUNK,
        ("objects",),
        needs=("probe", "develop.frames"),
        options={"min_confidence": 0.4},
        models=("objects",),
    )

    def run(self, work: Work) -> None:
        """Save objects.jsonl."""
        least, model = float(work.options["min_confidence"]), work.models["objects"]
        found = [
            Observation("object", look.span, t.label, round(t.confidence, CONFIDENCE), box=box(t.box, look.picture))
            for look in looks(work)
            for t in work.engine.detect_objects(model, look.picture, least)
        ]
        work.save("objects", "objects.jsonl", dump(found), MEDIA_TYPE)
        work.count("objects", len(found))
        work.note("objects", kinds=["object"])


STAGE = Objects()
