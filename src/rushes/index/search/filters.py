"""Filters: which videos and which languages a clause looks at. Pure."""

from collections.abc import Callable, Collection, Iterable, Sequence

from rushes.index.port import CatalogEntry, Posting
from rushes.index.query import Filter, Term
from rushes.index.tokenizer import words

_SPOKEN = ("speech", "text", "entity")  # kinds that have a language


def matching_videos(
    filters: Sequence[Filter], catalog: Callable[[], Iterable[CatalogEntry]], only: Collection[str] | None
) -> Collection[str] | None:
    """The videos that a clause looks at; None for all. The catalog is read only where a filter asks for it."""
    asked = [f for f in filters if f.name in {"in", "date"}]
    if not asked:
        return only
    there = [s for s in catalog() if only is None or s.id in only]
    return {s.id for s in there if all(_holds(f, s) != f.negated for f in asked)}


def matches_language(asked: Filter, posting: Posting, term: Term) -> bool:
    """Whether a language filter lets a passage through; what has no language passes where it is named by its words."""
    if not posting.language and posting.kind not in _SPOKEN and term.words:
        return True
    spoken = posting.language.lower()
    return (spoken == asked.value or spoken.startswith(f"{asked.value}-")) != asked.negated


def _holds(asked: Filter, video: CatalogEntry) -> bool:
    return _is_in(asked.value, video) if asked.name == "in" else _is_of(asked.value, video.shot_at)


def _is_in(value: str, video: CatalogEntry) -> bool:
    """By id or the beginning of it, or by words of its name or path, the last of which may be a beginning."""
    if video.id.startswith(value) or video.id == f"vid_{value}":
        return True
    wanted = words(value)
    return any(_within(wanted, words(text)) for text in (video.name, video.path))


def _within(wanted: Sequence[str], said: Sequence[str]) -> bool:
    *first, last = wanted
    size = len(wanted)
    return any(
        said[at : at + size - 1] == first and said[at + size - 1].startswith(last) for at in range(len(said) - size + 1)
    )


def _is_of(value: str, shot_at: str) -> bool:
    """2024, 2024-05, 2024-05-01, or a range of them: both ends count whole."""
    if ".." not in value:
        return shot_at.startswith(value)
    first, last = value.split("..", 1)
    return (not first or shot_at[: len(first)] >= first) and (not last or shot_at[: len(last)] <= last)
