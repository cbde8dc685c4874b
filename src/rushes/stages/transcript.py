"""Transcript: all lines of a film as data, text and subtitles."""

from collections import Counter
from collections.abc import Sequence

from rushes.domain.observation import Observation, load
from rushes.domain.stage import Scope, StageSpec
from rushes.media.subtitles import cues, srt, text, vtt
from rushes.stages.port import Work


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
