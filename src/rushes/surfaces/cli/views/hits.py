"""What to print when a search finds nothing: a similar word, what there is, what is not finished."""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from rushes.domain.job import FINAL
from rushes.domain.span import clock
from rushes.library import Library
from rushes.library.search import Hit, Piece, Summary
from rushes.surfaces.cli.screen import DONE, MARK, Part, clean
from rushes.surfaces.cli.session import Session
from rushes.surfaces.words import duration, plural, timecode

OTHERS = 500  # hits that are read for what else there is
_KIND = re.compile(r"\b(object|place|person|entity):")
_WORD = re.compile(r"[^\W\d_]{3,}")


def report_no_hits(session: Session, library: Library, query: str, video: str) -> None:
    """Print why there may be no hit, and what to try next."""
    session.remark("no hits")
    videos, known = library.videos.page()[0], library.summary()
    if not videos:
        session.remark(describe_library(known))
        return
    similar = library.similar_query(query, video)
    if similar:
        session.remark(f"did you mean: rushes search {shlex.quote(similar)}")
    else:
        session.remark((_others(library, query, video) or _try(query, video), DONE))
    session.remark((f"searched {plural(known.videos, 'video')} ({duration(known.duration_us / 1e6)})", DONE))
    unfinished = [v for v in videos if v.state not in FINAL]
    if unfinished:
        session.remark((f"{plural(len(unfinished), 'video')} not finished yet: rushes jobs ls", DONE))


def describe_library(known: Summary) -> str:
    """3 videos, 1:12:05: speech 240, text 118 (en de)."""
    if not known.videos:
        return "no videos yet. Start with: rushes run PATH"
    kinds = ", ".join(f"{kind} {n}" for kind, n in known.kinds.items()) or "no text"
    spoken = f" ({' '.join(known.languages)})" if known.languages else ""
    return f"{plural(known.videos, 'video')}, {timecode(known.duration_us)}: {kinds}{spoken}"


def _others(library: Library, query: str, video: str) -> str:
    """What else there is of the kind that was searched."""
    kind = _KIND.search(query)
    if not kind:
        return ""
    known = Counter(hit.text for hit in library.search(f"kind:{kind[1]}", OTHERS, "", video).hits)
    return f"{kind[1]} labels found so far: {', '.join(text for text, _ in known.most_common(12))}" if known else ""


def _try(query: str, video: str) -> str:
    longest = max(_WORD.findall(query), key=len, default="")
    start = f", or the start of one: rushes search '{longest[:4]}*'" if longest[4:] else ""
    return f"try {'without --video, or ' if video else ''}fewer or other words{start}"


_DOTS = "..."


def reference(hit: Hit) -> str:
    """`VIDEO@12:41.000-12:45.000`; the end is rounded up, so that the last word is whole."""
    end = -(-hit.end_us // 1000) * 1000
    return f"{hit.video}@{clock(hit.start_us)}-{clock(end)}"


def quote_parts(pieces: Sequence[Piece], room: int, *, utf8: bool) -> list[Part]:
    """The line in quotes, found words marked, cut to so many cells around the first of them (0 = all)."""
    tidy = [(clean(text, utf8=utf8), found) for text, found in pieces]
    whole = sum(len(text) for text, _ in tidy)
    start, end = _window(tidy, whole, room - 2) if room else (0, whole)
    parts: list[Part] = ['"' + (_DOTS if start else "")]
    at = 0
    for text, found in tidy:
        some = text[max(0, start - at) : max(0, end - at)]
        at += len(text)
        parts += [(some, MARK) if found else some] if some else []
    return [*parts, (_DOTS if end < whole else "") + '"']


def _window(pieces: Sequence[Piece], whole: int, room: int) -> tuple[int, int]:
    if whole <= room:
        return 0, whole
    room -= 2 * len(_DOTS)
    first = sum(len(text) for text, _ in takewhile(lambda piece: not piece[1], pieces))
    start = min(max(0, first - room // 3), max(0, whole - room))
    return start, start + room
