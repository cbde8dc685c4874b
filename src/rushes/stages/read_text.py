"""Text on screen, read in the sampled frames of a chunk."""

from collections.abc import Iterator, Sequence

from rushes.domain.observation import MEDIA_TYPE, READINGS, Observation, dump
from rushes.domain.stage import Scope, StageSpec
from rushes.engines.models.languages import bcp47
from rushes.engines.models.manifest import TESSERACT
from rushes.engines.models.vision import input_side
from rushes.engines.nets.text_language import language_of
from rushes.engines.port import TextLine
from rushes.stages.port import Work
from rushes.stages.vision.samples import FRAMES, SampledFrame, bounding_box, relative_points, sampled_frames
from rushes.stages.vision.text_segments import is_certain


class ReadText:
    """Reads text frame by frame. Pictures without text give no lines and no error."""

    spec = StageSpec(
        "read_text",
        2,
        Scope.CHUNK,
        ("lines",),
        FRAMES,
        options={"profile": "balanced", "languages": ["en"], "min_confidence": 0.6, "engine": ""},
        limits={"languages": (), "min_confidence": (0.0, 1.0), "engine": ("", TESSERACT)},
        lane="gpu",
        models=("text",),
    )

    def run(self, work: Work) -> None:
        """Save readings.jsonl, all readings, and lines.jsonl, those that need no second reading to be shown."""
        languages = [bcp47(str(x)) for x in work.options["languages"]]
        model, side = work.models["text"], input_side("text", str(work.options["profile"]))
        use_gpu = bool(work.options.get("use_gpu", True))
        read = sampled_frames(work, lambda p: work.engine.read_text(model, p, side, languages, use_gpu=use_gpu))
        least = float(work.options["min_confidence"])
        found = [line for frame, lines in read for line in _lines(frame, lines, languages, least)]
        certain = [line for line in found if is_certain(line)]
        work.save("lines", "readings.jsonl", dump(found), READINGS)
        work.save("lines", "lines.jsonl", dump(certain), MEDIA_TYPE)
        work.count("lines", len(found))
        work.note("lines", kinds=["text"])


def _lines(
    frame: SampledFrame, lines: Sequence[TextLine], languages: Sequence[str], least: float
) -> Iterator[Observation]:
    for line in lines:
        if line.confidence >= least:
            language = language_of(line.text, languages)
            extra = {"polygon": relative_points(line.corners, frame.size)}
            yield frame.observation("text", line.text, line.confidence, bounding_box(line.corners), language, extra)
