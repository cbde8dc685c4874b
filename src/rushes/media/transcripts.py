"""Transcripts as data: lines with the languages they are in."""

from collections import Counter
from collections.abc import Sequence

from rushes.domain.keys import JSON
from rushes.domain.observation import Observation


def transcript_document(lines: Sequence[Observation]) -> dict[str, JSON]:
    """Lines as transcript.json holds them."""
    languages = spoken_time(lines)
    return {
        "language": next(iter(languages), ""),
        "languages": [[language, ms] for language, ms in languages.items()],
        "lines": [line.to_json() for line in lines],
    }


def spoken_time(lines: Sequence[Observation]) -> dict[str, int]:
    """Milliseconds of words in each language, most spoken first; of a line without words, all of it."""
    spoken: Counter[str] = Counter()
    for line in lines:
        times = [(a, b) for _, a, b, _ in line.words] or [(line.span.start, line.span.end)]
        spoken[line.language] += sum(int((b - a) * line.span.base * 1000) for a, b in times)
    return dict(sorted(((k, v) for k, v in spoken.items() if k), key=lambda pair: (-pair[1], pair[0])))
