"""What to say when a search finds nothing: a word that is there and looks like it, what there is, what is not ready."""

import difflib
import re
import shlex
from collections import Counter
from collections.abc import Iterable

from rushes.domain.job import FINAL
from rushes.index.port import Video
from rushes.library import Library
from rushes.surfaces.cli.screen import DONE
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.text import length, many

FILMS = 20  # whose words are looked through
LIKE = 0.75  # how alike two words must be, of 1
OTHERS = 500  # hits that are looked through for what else there is
_KIND = re.compile(r"\b(object|place|person|entity):")
_WORD = re.compile(r"[^\W\d_]{3,}")


def tell_nothing(session: Session, library: Library, query: str, video: str) -> None:
    """Why there may be no hit, and what to type next."""
    session.remark("no hits")
    films = library.videos()[0]
    meant = _meant(library, query, films, video)
    if meant:
        session.remark(f"did you mean: rushes search {shlex.quote(meant)}")
    elif films:
        session.remark((_others(library, query, video) or _try(query, video), DONE))
    session.remark((what_there_is(library), DONE))
    unfinished = [v for v in films if v.state not in FINAL]
    if unfinished:
        session.remark((f"{many(len(unfinished), 'film')} not finished: rushes jobs ls", DONE))


def what_there_is(library: Library) -> str:
    """3 films, 1:12:05: speech 240, text 118 (en de)."""
    there = library.summary()
    if not there.videos:
        return "nothing to find yet; begin with: rushes run PATH"
    kinds = ", ".join(f"{kind} {n}" for kind, n in there.kinds.items()) or "nothing in words"
    spoken = f" ({' '.join(there.languages)})" if there.languages else ""
    return f"{many(there.videos, 'film')}, {length(there.duration_us)}: {kinds}{spoken}"


def _others(library: Library, query: str, video: str) -> str:
    """What else there is of the kind that was asked for."""
    asked = _KIND.search(query)
    if not asked:
        return ""
    there = Counter(hit.text for hit in library.search(f"kind:{asked[1]}", OTHERS, "", video).hits)
    return f"what there is of {asked[1]}: {', '.join(text for text, _ in there.most_common(12))}" if there else ""


def _try(query: str, video: str) -> str:
    longest = max(_WORD.findall(query), key=len, default="")
    start = f", or the beginning of one: rushes search '{longest[:4]}*'" if longest[4:] else ""
    return f"try {'without --video, or ' if video else ''}fewer or other words{start}"


def _meant(library: Library, query: str, films: Iterable[Video], video: str) -> str:
    """The query with unknown words replaced by what is said, if that is found."""
    said = _said(library, [v for v in films if not video or v.id == video][:FILMS])
    like = {word: _like(word.lower(), said) for word in _WORD.findall(query) if word.lower() not in said}
    if not any(like.values()):
        return ""
    meant = _WORD.sub(lambda found: like.get(found[0]) or found[0], query)
    return meant if library.search(meant, 1, "", video).total else ""


def _said(library: Library, films: Iterable[Video]) -> frozenset[str]:
    index, owner = library.home.index, library.home.settings.owner
    lines = (line.text for film in films for kind in ("speech", "text") for line in index.lines(owner, film.id, kind))
    return frozenset(word for text in lines for word in _WORD.findall(text.lower()))


def _like(word: str, said: frozenset[str]) -> str:
    near = [w for w in said if abs(len(w) - len(word)) < 3]
    return next(iter(difflib.get_close_matches(word, near, 1, LIKE)), "")
