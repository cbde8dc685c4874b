"""Places: where the kept frames of a chunk were taken, or that nobody knows."""

from rushes.domain.observation import MEDIA_TYPE, Observation, dump
from rushes.domain.stage import Scope, StageSpec
from rushes.stages.port import Work
from rushes.stages.sight.boxes import CONFIDENCE
from rushes.stages.sight.looks import SampledFrame, looks

UNKNOWN = "unknown"


class Places:
    """A place for each picture that was looked at; `unknown` rather than a wrong guess."""

    spec = StageSpec(
        "places",
        1,
        Scope.CHUNK,
        ("places",),
        needs=("probe", "develop.frames"),
        options={"min_confidence": 0.3, "top_k": 5},
        models=("places",),
    )

    def run(self, work: Work) -> None:
        """Save places.jsonl: one row for each look, with the likeliest places beside the one that is sure enough."""
        found = [_place(work, look) for look in looks(work)]
        work.save("places", "places.jsonl", dump(found), MEDIA_TYPE)
        work.count("places", len(found))
        work.note("places", kinds=["place"])


def _place(work: Work, look: SampledFrame) -> Observation:
    guesses = work.engine.classify_place(work.models["places"], look.picture, int(work.options["top_k"]))
    label, share = guesses[0] if guesses else (UNKNOWN, 0.0)
    if share < float(work.options["min_confidence"]):
        label, share = UNKNOWN, 1 - share
    top = [[name, round(part, CONFIDENCE)] for name, part in guesses]
    return Observation("place", look.span, label, round(share, CONFIDENCE), extra={"top": top})


STAGE = Places()
