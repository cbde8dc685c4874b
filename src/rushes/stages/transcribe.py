"""Transcribe: speech to text, the windows that begin in a chunk."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial

from rushes.domain.keys import JSON, chunk_file
from rushes.domain.observation import Observation
from rushes.domain.result import TEXT
from rushes.domain.stage import Scope, StageSpec
from rushes.engines.models.languages import whisper_code
from rushes.engines.models.speech import parse_speech_models
from rushes.engines.port import RATE, answered
from rushes.media.subtitles import text
from rushes.stages.port import Work
from rushes.stages.speech.transcriber import Transcriber
from rushes.stages.speech.windows import Window, open_pcm


class Transcribe:
    """Speech to text, chunk by chunk. Silence, music and noise give no lines and no error."""

    spec = StageSpec(
        "transcribe",
        2,
        Scope.CHUNK,
        ("lines",),
        ("probe", "audio"),
        options={"profile": "balanced", "language": ""},
        lane="gpu",
        models=("speech",),
    )

    def run(self, work: Work) -> None:
        """Save the lines of the windows that begin in this chunk: `lines.jsonl`, and `chunk_0000.txt` to read."""
        doc = work.input("audio", "windows").json("windows.json")
        mine = _mine(work, doc)
        found = list(_transcribe(work, mine, int(doc["offset"]))) if mine else []
        voiced_ms = sum(w.length for w in mine) * 1000 // RATE
        work.save_observations("lines", "lines.jsonl", found, kinds=["speech"], voiced_ms=voiced_ms)
        work.save("lines", chunk_file(work.chunk or 0), text(found).encode(), TEXT)


def _transcribe(work: Work, windows: Sequence[Window], offset: int) -> Iterator[Observation]:
    pcm, models = open_pcm(work.input("audio", "pcm").file("pcm.wav")), parse_speech_models(work.models["speech"])
    language = whisper_code(str(work.options["language"]))
    transcriber = Transcriber(work.engine, models, pcm, str(work.options["profile"]), language)

    def lines(n: int, window: Window) -> list[Observation]:
        work.progress(n / len(windows))
        return [line.moved(Fraction(offset, RATE)) for line in transcriber.transcribe(window)]

    for some in answered(partial(lines, n, window) for n, window in enumerate(windows)):
        yield from some


def _mine(work: Work, doc: JSON) -> list[Window]:
    """Windows that start in this chunk; the first and the last chunk also take those outside the picture."""
    assert work.span is not None
    track = work.facts.video
    ends = [track.end * track.base] if track else [a.end * a.base for a in work.facts.audio]
    start = work.span.start * work.span.base if work.chunk else None
    end = work.span.end * work.span.base
    last = end >= max(ends)
    windows = [Window.from_json(w) for w in doc["windows"]]
    at = [Fraction(w.start + int(doc["offset"]), RATE) for w in windows]
    return [w for w, t in zip(windows, at, strict=True) if (start is None or t >= start) and (last or t < end)]
