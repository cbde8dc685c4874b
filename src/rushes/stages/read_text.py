"""Read text: the lines that can be read in the kept frames of a chunk."""

from collections.abc import Iterator

from rushes.domain.observation import MEDIA_TYPE, READINGS, Observation, dump
from rushes.domain.stage import Scope, StageSpec
from rushes.engines.models.languages import bcp47
from rushes.engines.models.text import input_side, language_of
from rushes.stages.port import Work
from rushes.stages.sight.boxes import CONFIDENCE, box, points, round_about
from rushes.stages.sight.lines import sure_alone
from rushes.stages.sight.looks import SampledFrame, looks


class ReadText:
    """Text in pictures, frame by frame. Pictures without text give no lines and no error."""

    spec = StageSpec(
        "read_text",
        1,
        Scope.CHUNK,
        ("lines",),
        needs=("probe", "develop.frames"),
        options={"profile": "balanced", "languages": ["en"], "min_confidence": 0.6},
        models=("text",),
    )

    def run(self, work: Work) -> None:
        """Save readings.jsonl, everything that was read, and lines.jsonl, what is sure without a second look."""
        found = [line for look in looks(work) for line in _lines(work, look)]
        sure = [line for line in found if sure_alone(line)]
        work.save("lines", "readings.jsonl", dump(found), READINGS)
        work.save("lines", "lines.jsonl", dump(sure), MEDIA_TYPE)
        work.count("lines", len(found))
        work.note("lines", kinds=["text"])


def _lines(work: Work, look: SampledFrame) -> Iterator[Observation]:
    languages = [bcp47(str(x)) for x in work.options["languages"]]
    profile, least = str(work.options["profile"]), float(work.options["min_confidence"])
    for line in work.engine.read_text(work.models["text"], look.picture, input_side(profile), languages):
        if line.confidence >= least:
            yield Observation(
                kind="text",
                span=look.span,
                text=line.text,
                confidence=round(line.confidence, CONFIDENCE),
                language=language_of(line.text, languages),
                box=box(round_about(line.corners), look.picture),
                extra={"polygon": points(line.corners, look.picture)},
            )


STAGE = ReadText()
