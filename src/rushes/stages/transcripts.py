"""Transcripts: speech to text chunk by chunk, then all lines of a film as data, text and subtitles."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from rushes.domain.keys import JSON
from rushes.domain.observation import Observation, load
from rushes.domain.stage import Scope, StageSpec
from rushes.engines.models.languages import whisper_code
from rushes.engines.models.speech import parse_speech_models
from rushes.engines.port import RATE
from rushes.media.subtitles import cues, srt, text, vtt
from rushes.stages.port import Work
from rushes.stages.speech.transcriber import Transcriber
from rushes.stages.speech.windows import Window, open_pcm


class Transcribe:
    """Speech to text, chunk by chunk. Silence, music and noise give no lines and no error."""

    spec = StageSpec(
        "transcribe",
        1,
        Scope.CHUNK,
        ("lines",),
        ("probe", "audio"),
        options={"profile": "balanced", "language": ""},
        models=("speech",),
    )

    def run(self, work: Work) -> None:
        """Save `lines.jsonl`: the lines of the windows that begin in this chunk."""
        doc = work.input("audio", "windows").json("windows.json")
        mine = _mine(work, doc)
        found = list(_transcribe(work, mine, int(doc["offset"]))) if mine else []
        voiced_ms = sum(w.length for w in mine) * 1000 // RATE
        work.save_observations("lines", "lines.jsonl", found, kinds=["speech"], voiced_ms=voiced_ms)


def _transcribe(work: Work, windows: Sequence[Window], offset: int) -> Iterator[Observation]:
    pcm, models = open_pcm(work.input("audio", "pcm").path("pcm.wav")), parse_speech_models(work.models["speech"])
    language = whisper_code(str(work.options["language"]))
    transcriber = Transcriber(work.engine, models, pcm, str(work.options["profile"]), language)
    for n, window in enumerate(windows):
        work.progress(n / len(windows))
        for line in transcriber.transcribe(window):
            yield line.moved(Fraction(offset, RATE))


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


class Transcript:
    """Joins what the chunks heard, in film time; decides nothing but the language of the whole."""

    spec = StageSpec("transcript", 2, Scope.VIDEO, ("transcript",), needs=("probe", "transcribe"))

    def run(self, work: Work) -> None:
        """Save transcript.json, transcript.txt, subtitles.srt and subtitles.vtt."""
        heard = (line for part in work.inputs("transcribe", "lines") for line in load(part.bytes("lines.jsonl")))
        lines = [line.moved(-work.facts.start) for line in heard]
        languages = spoken_time(lines)
        doc = {
            "language": next(iter(languages), ""),
            "languages": [[language, ms] for language, ms in languages.items()],
            "lines": [line.to_json() for line in lines],
        }
        found = cues(lines)
        folder = f"transcripts/{work.video}"
        work.save_json("transcript", "transcript.json", doc, f"{folder}/transcript.json")
        for name, body, kind in (
            ("transcript.txt", text(lines), "text/plain"),
            ("subtitles.srt", srt(found), "application/x-subrip"),
            ("subtitles.vtt", vtt(found), "text/vtt"),
        ):
            work.save("transcript", name, body.encode(), kind, f"{folder}/{name}")
        work.count("transcript", len(lines))
        work.note("transcript", language=doc["language"], languages=list(languages), cues=len(found))
        work.note("transcript", doubtful=sum(bool(line.extra.get("doubtful")) for line in lines))


def spoken_time(lines: Sequence[Observation]) -> dict[str, int]:
    """Milliseconds of words in each language, most spoken first."""
    spoken: Counter[str] = Counter()
    for line in lines:
        spoken[line.language] += sum(int((b - a) * line.span.base * 1000) for _, a, b, _ in line.words)
    return dict(sorted(((k, v) for k, v in spoken.items() if k), key=lambda pair: (-pair[1], pair[0])))
