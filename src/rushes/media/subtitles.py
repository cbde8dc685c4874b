"""Subtitles people accept: two short lines at a reader's pace, as SRT, WebVTT or plain text.

Nothing that is said can become a cue, a tag or a time of its own.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rushes.domain.observation import Observation
from rushes.domain.span import to_us
from rushes.media.typeset import WIDTH, Token, joined, layout, strain, width

GAP_MS = 80  # two frames: a reader sees that the text has changed
SHORTEST_MS = 1_000
LONGEST_MS = 7_000
PACE = 17  # characters a second
_GLIMPSE_MS = 400
_NEAR_MS = 500
_JOINERS = "\u200c\u200d"  # not printable, yet part of words and signs
_PARAGRAPH_US = 2_000_000


@dataclass(frozen=True, slots=True)
class Cue:
    """One or two lines of text and when they are shown, in milliseconds."""

    start: int
    end: int
    lines: tuple[str, ...]


def cues(lines: Iterable[Observation]) -> list[Cue]:
    """Cues of lines in any order and number, whose times count from where players call zero."""
    ordered = sorted(lines, key=lambda o: (o.span.start_us, o.span.end_us))
    parts = [part for line in ordered for part in _split(_tokens(line))]
    return _timed(_unflashed(parts))


def srt(found: Sequence[Cue]) -> str:
    """Cues as SubRip."""
    return "".join(f"{n}\n{_times(c, ',')}\n{_tagless(c.lines)}\n\n" for n, c in enumerate(found, 1))


def vtt(found: Sequence[Cue]) -> str:
    """Cues as WebVTT."""
    texts = [(c, "\n".join(html.escape(line, quote=False) for line in c.lines)) for c in found]
    return "WEBVTT\n\n" + "".join(f"{n}\n{_times(c, '.')}\n{text}\n\n" for n, (c, text) in enumerate(texts, 1))


def text(lines: Iterable[Observation]) -> str:
    """What was said as paragraphs, one for each stretch without a long pause."""
    out, last = "", None
    for line in sorted(lines, key=lambda o: (o.span.start_us, o.span.end_us)):
        said = clean(line.text)
        if last is not None and said:
            out += "\n\n" if line.span.start_us - last > _PARAGRAPH_US else _between(out, said)
        out, last = out + said, line.span.end_us
    return out + "\n" if out else ""


def clean(said: str) -> str:
    """Text on one line: no control characters, no line or paragraph ends, no arrow that could pass for a time."""
    plain = "".join(c if c.isprintable() or c in _JOINERS else " " for c in said)
    return re.sub(r"-{2,}>", "→", re.sub(r"\s+", " ", plain)).strip()


def _tokens(line: Observation) -> list[Token]:
    whole, at = clean(line.text), 0
    start, end = line.span.start_us // 1000, line.span.end_us // 1000
    tokens: list[Token] = []
    for said, a, b, _ in line.words:
        word = clean(said)
        found = whole.find(word, at)
        if not word or found < 0 or whole[at:found].strip():
            break
        times = (to_us(t, line.span.base) // 1000 for t in (a, b))
        tokens.append(Token(word, found > at, *times))
        at = found + len(word)
    if not tokens or whole[at:].strip():  # the words are not those of the text: somebody corrected it
        tokens = list(_spread([(w, n > 0) for n, w in enumerate(whole.split())], start, end))
    return [piece for token in tokens for piece in _narrow(token)]


def _spread(words: Sequence[tuple[str, bool]], start: int, end: int) -> Iterator[Token]:
    """Words with times in proportion to their width."""
    total, done = sum(width(w) for w, _ in words), 0
    for word, space in words:
        first = start + (end - start) * done // max(1, total)
        done += width(word)
        yield Token(word, space, first, start + (end - start) * done // max(1, total))


def _narrow(token: Token) -> Iterator[Token]:
    """A word, or pieces of it if no line could hold it."""
    if width(token.text) <= WIDTH:
        yield token
        return
    step = WIDTH // 2
    pieces = [token.text[n : n + step] for n in range(0, len(token.text), step)]
    yield from _spread([(p, token.space and not n) for n, p in enumerate(pieces)], token.start, token.end)


def _split(tokens: list[Token]) -> list[list[Token]]:
    if not tokens:
        return []
    if len(tokens) == 1 or (layout(tokens) and tokens[-1].end - tokens[0].start <= LONGEST_MS):
        return [tokens]
    total = width(joined(tokens))

    def cost(at: int) -> float:
        uneven = abs(2 * width(joined(tokens[:at])) - total) / total
        pause = tokens[at].start - tokens[at - 1].end
        return uneven + strain(tokens, at) - min(0.5, max(0, pause) / 1000)

    best = min(range(1, len(tokens)), key=cost)
    return [*_split(tokens[:best]), *_split(tokens[best:])]


def _unflashed(parts: Iterable[list[Token]]) -> list[list[Token]]:
    """Parts that would only flash join their neighbour, if both fit together."""
    out: list[list[Token]] = []
    for part in parts:
        together = _together(out[-1], part) if out else []
        if together and _flashes(out[-1], part) and layout(together):
            out[-1] = together
        else:
            out.append(part)
    return out


def _together(before: list[Token], after: list[Token]) -> list[Token]:
    space = _between(before[-1].text, after[0].text) != ""
    return [*before, replace(after[0], space=space), *after[1:]]


def _flashes(before: list[Token], after: list[Token]) -> bool:
    """Whether one of two neighbours is too short to be read, and both together are not too long."""
    short = min(p[-1].end - p[0].start for p in (before, after)) < SHORTEST_MS
    near = 0 <= after[0].start - before[-1].end <= _NEAR_MS
    return short and near and after[-1].end - before[0].start <= LONGEST_MS


def _timed(parts: Sequence[list[Token]]) -> list[Cue]:
    """Cues that follow each other: shown as long as reading takes, where the next leaves that much time."""
    out: list[Cue] = []
    free = 0
    for n, part in enumerate(parts):
        start = max(part[0].start, free)
        reading = -(-width(joined(part)) * 1000 // PACE)
        wanted = max(part[-1].end, start + SHORTEST_MS, start + reading)
        room = parts[n + 1][0].start - GAP_MS if n + 1 < len(parts) else wanted
        end = max(min(wanted, room, start + LONGEST_MS), start + _GLIMPSE_MS)
        out.append(Cue(start, end, layout(part) or (joined(part),)))
        free = end + GAP_MS
    return out


def _between(before: str, after: str) -> str:
    """A space, unless both sides are of a script that has none."""
    return "" if width(before[-1:]) == 2 and width(after[:1]) == 2 else " "


def _times(cue: Cue, point: str) -> str:
    return f"{timestamp(cue.start, point)} --> {timestamp(cue.end, point)}"


def timestamp(ms: int, point: str = ".") -> str:
    """Milliseconds as cues are timed: 01:02:03.456; SubRip has a comma for the point."""
    seconds, ms = divmod(ms, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{point}{ms:03d}"


def _tagless(lines: Iterable[str]) -> str:
    """Players take tags like <b> and braces with a backslash for orders: what was said is shown as it is."""
    return "\n".join(re.sub(r"<(?=[/!?a-zA-Z])", "‹", line).replace("{\\", "{ \\") for line in lines)  # noqa: RUF001
