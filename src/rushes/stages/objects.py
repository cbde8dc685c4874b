"""Objects in the sampled frames of a chunk."""

from rushes.domain.stage import Scope, StageSpec
from rushes.stages.port import Work
from rushes.stages.vision.samples import FRAMES, sampled_frames


class Objects:
    """Detects objects frame by frame."""

    spec = StageSpec(
        "objects",
        1,
        Scope.CHUNK,
        ("objects",),
        FRAMES,
        options={"min_confidence": 0.4},
        limits={"min_confidence": (0.0, 1.0)},
        lane="gpu",
        models=("objects",),
    )

    def run(self, work: Work) -> None:
        """Save objects.jsonl."""
        least, model = float(work.options["min_confidence"]), work.models["objects"]
        found = [
            frame.observation("object", d.label, d.confidence, d.box)
            for frame, some in sampled_frames(work, lambda pictures: work.engine.detect_objects(model, pictures, least))
            for d in some
        ]
        work.save_observations("objects", "objects.jsonl", found, kinds=["object"])
