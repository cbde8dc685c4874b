"""Chapters as FFMETADATA and WebVTT, from shots or from given marks. Pure."""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rushes.domain.span import Span
from rushes.media.subtitles import timestamp


@dataclass(frozen=True, slots=True)
class Chapter:
    """A part of the film with a title."""

    span: Span
    title: str


def from_shots(shots: Iterable[Span]) -> list[Chapter]:
    """Each shot as a chapter: Shot 1, Shot 2, ..."""
    return [Chapter(shot, f"Shot {n}") for n, shot in enumerate(shots, 1)]


def ffmetadata(chapters: Sequence[Chapter]) -> bytes:
    """What `ffmpeg -i FILM -i THIS -map_chapters 1 -c copy` reads; times stay exact in their own base."""
    parts = [";FFMETADATA1\n"]
    for n, chapter in enumerate(chapters, 1):
        base, title = chapter.span.base, re.sub(r"([=;#\\])", r"\\\1", _one_line(chapter.title) or f"Chapter {n}")
        parts.append(
            f"[CHAPTER]\nTIMEBASE={base.numerator}/{base.denominator}\n"
            f"START={chapter.span.start}\nEND={chapter.span.end}\ntitle={title}\n"
        )
    return "".join(parts).encode("utf-8", "replace")


def webvtt(chapters: Sequence[Chapter]) -> bytes:
    """What a browser's `<track kind="chapters">` reads."""
    parts = ["WEBVTT\n"]
    for n, chapter in enumerate(chapters, 1):
        start, end = max(0, chapter.span.start_us // 1000), max(0, chapter.span.end_us // 1000)
        title = html.escape(_one_line(chapter.title) or f"Chapter {n}", quote=False)
        parts.append(f"\n{n}\n{timestamp(start)} --> {timestamp(max(end, start + 1))}\n{title}\n")
    return "".join(parts).encode("utf-8", "replace")


def _one_line(text: str) -> str:
    """No line break may begin a line of ours inside a title."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]", " ", text).split())
