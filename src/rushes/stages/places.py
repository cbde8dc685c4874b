"""Places: the scene class of the sampled frames of a chunk."""

from collections.abc import Sequence

from rushes.domain.observation import Observation
from rushes.domain.stage import Scope, StageSpec
from rushes.stages.port import Work
from rushes.stages.vision.samples import CONFIDENCE_DIGITS, FRAMES, SampledFrame, sampled_frames

UNKNOWN = "unknown"


class Places:
    """Classifies the scene frame by frame; `unknown` where no class is likely enough."""

    spec = StageSpec(
        "places",
        1,
        Scope.CHUNK,
        ("places",),
        FRAMES,
        options={"min_confidence": 0.3, "top_k": 5},
        limits={"min_confidence": (0.0, 1.0), "top_k": (1, 365)},
        lane="gpu",
        models=("places",),
    )

    def run(self, work: Work) -> None:
        """Save places.jsonl: one row per frame, with the `top_k` likeliest classes in `top`."""
        model, most, least = work.models["places"], int(work.options["top_k"]), float(work.options["min_confidence"])
        guessed = sampled_frames(work, lambda pictures: work.engine.classify_place(model, pictures, most))
        found = [_place(frame, guesses, least) for frame, guesses in guessed]
        work.save_observations("places", "places.jsonl", found, kinds=["place"])


def _place(frame: SampledFrame, guesses: Sequence[tuple[str, float]], least: float) -> Observation:
    label, share = guesses[0] if guesses else (UNKNOWN, 0.0)
    if share < least:
        label, share = UNKNOWN, 1 - share
    top = [[name, round(part, CONFIDENCE_DIGITS)] for name, part in guesses]
    return frame.observation("place", label, share, extra={"top": top})
