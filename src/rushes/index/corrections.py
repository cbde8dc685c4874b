"""Corrections applied to lines, whichever model made them and however they were cut. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from rushes.domain.observation import Observation
from rushes.domain.span import Span, to_us
from rushes.index.changes import Correction

_US = Fraction(1, 1_000_000)


def corrected(lines: Sequence[Observation], said: Iterable[Correction]) -> list[Observation]:
    """Lines in order of time: what a correction covers gives way to it, what lies beside it stays."""
    out = list(lines)
    for correction in sorted(said, key=lambda c: (c.start_us, c.end_us, c.id)):
        covered = [line for line in out if _share(line, correction) > 0]
        out = [part for line in out for part in _left(line, correction)]
        if correction.text:
            out.append(_line(correction, covered))
    return sorted(out, key=lambda o: (o.span.start_us, o.span.end_us)) if len(out) != len(lines) or said else out


def _share(line: Observation, correction: Correction) -> int:
    """How many microseconds both last."""
    end = max(line.span.end_us, line.span.start_us + 1)
    return min(end, correction.end_us) - max(line.span.start_us, correction.start_us)


def _left(line: Observation, correction: Correction) -> list[Observation]:
    """What a correction leaves of a line: all, nothing, or the words before and after it."""
    shared, whole = _share(line, correction), max(1, line.span.end_us - line.span.start_us)
    if shared <= 0:
        return [line]
    before = [w for w in line.words if _middle(line, w) < correction.start_us]
    after = [w for w in line.words if _middle(line, w) >= correction.end_us]
    if not line.words:
        return [] if 2 * shared > whole else [line]
    return [_part(line, some) for some in (before, after) if some]


def _middle(line: Observation, word: tuple[str, int, int, float]) -> int:
    return (to_us(word[1], line.span.base) + to_us(word[2], line.span.base)) // 2


def _part(line: Observation, some: Sequence[tuple[str, int, int, float]]) -> Observation:
    text = " ".join(w[0].strip() for w in some)
    return replace(line, span=Span(some[0][1], some[-1][2], line.span.base), text=text, words=tuple(some))


def _line(correction: Correction, covered: Sequence[Observation]) -> Observation:
    """A person is sure. Where one line is covered exactly, its own time base is kept."""
    like = max(covered, key=lambda line: _share(line, correction), default=None)
    span = Span(correction.start_us, correction.end_us, _US)
    if like and (like.span.start_us, like.span.end_us) == (span.start, span.end):
        span = like.span
    extra = {"corrected": correction.id}
    return Observation(correction.kind, span, correction.text, 1.0, like.language if like else "", extra=extra)
