"""Subtitles of two short lines at reading speed, as SRT, WebVTT or plain text.

Text is escaped: it cannot become a cue, a tag or a time.
"""

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rushes.domain.observation import Observation
from rushes.domain.span import to_us

MAX_COLUMNS = 42  # of a line; a wide character takes two

_SENTENCE = re.compile(r"[.!?。！？…][\"'”’»)\]]*$")  # noqa: RUF001 - other scripts
_COMMA = re.compile(r"[,;:、，；：—–][\"'”’»)\]]*$")  # noqa: RUF001 - other scripts
# Articles, prepositions and the like: no break after them
_PROCLITICS = frozenset(
    re.findall(
        r"\w+",
        """a an the of to in on at by for from with into onto over under about as than my your his her its
        our their this that these those no not very der die das den dem des ein eine einen einem einer
        eines zu im am vom zum zur von mit für auf aus bei nach über unter um kein keine le la les un une
        du de à au aux en dans pour par sur ce cette mon ma son sa el los las una del al con por para su
        lo gli il i di da nel nella della dei che se o os uma do na het een van op mr mrs ms dr prof st""",
    )
)
_CONJUNCTIONS = frozenset(
    re.findall(r"\w+", "and but or because that which who when while if und aber oder weil dass et mais y")
)
MIN_GAP_MS = 80  # two frames, so that readers notice the change
MIN_CUE_MS = 1_000
MAX_CUE_MS = 7_000
READING_SPEED = 17  # characters per second
FASTEST_SPEED = 21  # nobody should have to read faster where the next cue can wait
MAX_DELAY_MS = 500  # of a cue after its first word, so that the one before it can be read
_SQUEEZED_CUE_MS = 400
_MERGE_GAP_MS = 500
_JOINERS = "\u200c\u200d"  # not printable, but part of words and emoji
_PARAGRAPH_PAUSE_US = 2_000_000


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word, whether a space precedes it, and when it is spoken, in ms."""

    text: str
    space: bool
    start: int
    end: int


def columns(text: str) -> int:
    """Columns of a text; a wide character takes two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def join_words(words: Sequence[TimedWord]) -> str:
    """Words as one line."""
    return "".join((" " if t.space and n else "") + t.text for n, t in enumerate(words))


def break_lines(words: Sequence[TimedWord]) -> tuple[str, ...] | None:
    """One line, or two balanced ones; None if they do not fit."""
    whole = join_words(words)
    if columns(whole) <= MAX_COLUMNS:
        return (whole,)
    pairs = [(join_words(words[:n]), join_words(words[n:]), n) for n in range(1, len(words))]
    fitting = [p for p in pairs if columns(p[0]) <= MAX_COLUMNS and columns(p[1]) <= MAX_COLUMNS]
    if not fitting:
        return None
    uneven = [abs(columns(above) - columns(below)) / MAX_COLUMNS for above, below, _ in fitting]
    best = min(range(len(fitting)), key=lambda n: uneven[n] + break_cost(words, fitting[n][2]))
    return fitting[best][:2]


def break_cost(words: Sequence[TimedWord], at: int) -> float:
    """The cost of a break before word `at`; negative where a break is welcome."""
    before, after = words[at - 1].text, words[at].text
    if _SENTENCE.search(before):
        return -0.8
    if _COMMA.search(before):
        return -0.5
    if before.casefold().strip(".'\"“‘") in _PROCLITICS:  # noqa: RUF001 - quotation marks
        return 0.5
    return -0.2 if after.casefold() in _CONJUNCTIONS else 0.0


@dataclass(frozen=True, slots=True)
class Cue:
    """One or two lines of text and when they are shown, in milliseconds."""

    start: int
    end: int
    lines: tuple[str, ...]


def cues(lines: Iterable[Observation]) -> list[Cue]:
    """Cues of transcript lines in any order, in film time."""
    ordered = sorted(lines, key=lambda o: (o.span.start_us, o.span.end_us))
    parts = [part for line in ordered for part in _split(_timed_words(line))]
    return _time_cues(_merge_short(parts))


def srt(found: Sequence[Cue]) -> str:
    """Cues as SubRip."""
    return "".join(f"{n}\n{_times(c, ',')}\n{_escape_tags(c.lines)}\n\n" for n, c in enumerate(found, 1))


def vtt(found: Sequence[Cue]) -> str:
    """Cues as WebVTT."""
    texts = [(c, "\n".join(html.escape(line, quote=False) for line in c.lines)) for c in found]
    return "WEBVTT\n\n" + "".join(f"{n}\n{_times(c, '.')}\n{text}\n\n" for n, (c, text) in enumerate(texts, 1))


def text(lines: Iterable[Observation]) -> str:
    """The transcript as paragraphs, split at long pauses."""
    out, last = "", None
    for line in sorted(lines, key=lambda o: (o.span.start_us, o.span.end_us)):
        said = clean(line.text)
        if last is not None and said:
            out += "\n\n" if line.span.start_us - last > _PARAGRAPH_PAUSE_US else _separator(out, said)
        out, last = out + said, line.span.end_us
    return out + "\n" if out else ""


def clean(said: str) -> str:
    """Text on one line, without control characters and without arrows that look like a cue's times."""
    plain = "".join(c if c.isprintable() or c in _JOINERS else " " for c in said)
    return re.sub(r"-{2,}>", "→", re.sub(r"\s+", " ", plain)).strip()


def _timed_words(line: Observation) -> list[TimedWord]:
    whole, at = clean(line.text), 0
    start, end = line.span.start_us // 1000, line.span.end_us // 1000
    tokens: list[TimedWord] = []
    for said, a, b, _ in line.words:
        word = clean(said)
        found = whole.find(word, at)
        if not word or found < 0 or whole[at:found].strip():
            break
        times = (to_us(t, line.span.base) // 1000 for t in (a, b))
        tokens.append(TimedWord(word, found > at, *times))
        at = found + len(word)
    if not tokens or whole[at:].strip():  # the line was corrected: its words have no times
        tokens = list(_interpolate_times([(w, n > 0) for n, w in enumerate(whole.split())], start, end))
    return [piece for token in tokens for piece in _split_wide(token)]


def _interpolate_times(words: Sequence[tuple[str, bool]], start: int, end: int) -> Iterator[TimedWord]:
    """Words with times in proportion to their width."""
    total, done = sum(columns(w) for w, _ in words), 0
    for word, space in words:
        first = start + (end - start) * done // max(1, total)
        done += columns(word)
        yield TimedWord(word, space, first, start + (end - start) * done // max(1, total))


def _split_wide(token: TimedWord) -> Iterator[TimedWord]:
    """A word, or pieces of one that is wider than a line."""
    if columns(token.text) <= MAX_COLUMNS:
        yield token
        return
    step = MAX_COLUMNS // 2
    pieces = [token.text[n : n + step] for n in range(0, len(token.text), step)]
    yield from _interpolate_times([(p, token.space and not n) for n, p in enumerate(pieces)], token.start, token.end)


def _split(tokens: list[TimedWord]) -> list[list[TimedWord]]:
    if not tokens:
        return []
    if len(tokens) == 1 or (break_lines(tokens) and tokens[-1].end - tokens[0].start <= MAX_CUE_MS):
        return [tokens]
    total = columns(join_words(tokens))

    def cost(at: int) -> float:
        uneven = abs(2 * columns(join_words(tokens[:at])) - total) / total
        pause = tokens[at].start - tokens[at - 1].end
        return uneven + break_cost(tokens, at) - min(0.5, max(0, pause) / 1000)

    best = min(range(1, len(tokens)), key=cost)
    return [*_split(tokens[:best]), *_split(tokens[best:])]


def _merge_short(parts: Iterable[list[TimedWord]]) -> list[list[TimedWord]]:
    """Merge parts that are too short to read with their neighbour, if both fit together."""
    out: list[list[TimedWord]] = []
    for part in parts:
        together = _merge(out[-1], part) if out else []
        if together and _should_merge(out[-1], part) and break_lines(together):
            out[-1] = together
        else:
            out.append(part)
    return out


def _merge(before: list[TimedWord], after: list[TimedWord]) -> list[TimedWord]:
    space = _separator(before[-1].text, after[0].text) != ""
    return [*before, replace(after[0], space=space), *after[1:]]


def _should_merge(before: list[TimedWord], after: list[TimedWord]) -> bool:
    """Whether one of two neighbours is too short to read, and both together are not too long."""
    short = min(p[-1].end - p[0].start for p in (before, after)) < MIN_CUE_MS
    near = 0 <= after[0].start - before[-1].end <= _MERGE_GAP_MS
    return short and near and after[-1].end - before[0].start <= MAX_CUE_MS


def _time_cues(parts: Sequence[list[TimedWord]]) -> list[Cue]:
    """Cues without overlap, shown as long as reading takes where the next one leaves time."""
    out: list[Cue] = []
    free = 0
    for n, part in enumerate(parts):
        start = max(part[0].start, free)
        wanted = max(part[-1].end, start + MIN_CUE_MS, start + _reading_ms(part, READING_SPEED))
        room = parts[n + 1][0].start - MIN_GAP_MS if n + 1 < len(parts) else wanted
        short = start + _reading_ms(part, FASTEST_SPEED) - room
        room += max(0, min(short, _slack(parts, n + 1))) if short > 0 else 0
        end = max(min(wanted, room, start + MAX_CUE_MS), start + _SQUEEZED_CUE_MS)
        out.append(Cue(start, end, break_lines(part) or (join_words(part),)))
        free = end + MIN_GAP_MS
    return out


def _reading_ms(part: Sequence[TimedWord], speed: int) -> int:
    return -(-columns(join_words(part)) * 1000 // speed)


def _slack(parts: Sequence[list[TimedWord]], n: int) -> int:
    """How much later a cue can begin and still be read in time before the one after it."""
    start = parts[n][0].start
    last = parts[n + 1][0].start - MIN_GAP_MS if n + 1 < len(parts) else start + MAX_CUE_MS
    needed = max(_reading_ms(parts[n], READING_SPEED), MIN_CUE_MS)
    return min(MAX_DELAY_MS, min(last, start + MAX_CUE_MS) - start - needed)


def _separator(before: str, after: str) -> str:
    """A space, unless both sides are of a script that has none."""
    return "" if columns(before[-1:]) == 2 and columns(after[:1]) == 2 else " "


def _times(cue: Cue, point: str) -> str:
    return f"{timestamp(cue.start, point)} --> {timestamp(cue.end, point)}"


def timestamp(ms: int, point: str = ".") -> str:
    """Milliseconds as 01:02:03.456; SubRip uses a comma."""
    seconds, ms = divmod(ms, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{point}{ms:03d}"


def _escape_tags(lines: Iterable[str]) -> str:
    """Neutralise tags like <b> and braces with a backslash, which players would interpret."""
    return "\n".join(re.sub(r"<(?=[/!?a-zA-Z])", "‹", line).replace("{\\", "{ \\") for line in lines)  # noqa: RUF001
