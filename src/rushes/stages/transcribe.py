"""transcribe: the speech windows that begin in a chunk, as lines with words, times and languages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from rushes.domain.keys import JSON
from rushes.domain.observation import MEDIA_TYPE, Observation, dump
from rushes.domain.stage import Card, Scope
from rushes.engines.models.languages import bcp47, spoken
from rushes.engines.models.speech import Ears, ears, hearing
from rushes.engines.port import RATE, Engine, Heard, Hearing, Pcm, Word
from rushes.stages.port import Work
from rushes.stages.speech import doctor
from rushes.stages.speech.lines import lines, steady
from rushes.stages.speech.sound import Sound, open_sound
from rushes.stages.speech.windows import Range, Window

_SURE = 0.6
_SHORT = 3 * RATE
_CONTEXT = 30 * RATE
_GLANCE = 5 * RATE  # 0.1 CPU-seconds instead of 1.3 (base)


@dataclass(frozen=True, slots=True)
class Listener:
    """Asks the engine about windows: language first, then words, then again if they look wrong."""

    engine: Engine
    ears: Ears
    sound: Sound
    profile: str
    language: str  # empty: find out for each stretch of speech

    def window(self, window: Window) -> Iterator[Observation]:
        """The lines of a window, in samples of the pcm."""
        for language, part in self._by_language(window):
            heard, finding = self._best(language, part)
            words = [_moved(w, part) for p in heard.phrases for w in p.words]
            words = steady(words, part.start, part.end)
            yield from lines(words, bcp47(heard.language), doubtful=bool(finding.reasons))

    def _by_language(self, window: Window) -> list[tuple[str, Window]]:
        """Stretches of a window with the language of each; neighbours of one language stay together."""
        if self.language or len(window.groups) == 1:
            glance = self.ears.english != self.ears.every  # else hearing shares the encoding of the whole
            return [(self.language or self._language(window.groups, glance=glance), window)]
        runs: list[tuple[str, Window]] = []
        for groups in _worth_asking(window.groups):
            language = self._language(groups, glance=True)
            before = runs.pop()[1].groups if runs and runs[-1][0] == language else ()
            runs.append((language, Window((*before, *groups))))
        return runs

    def _language(self, groups: Sequence[Range], *, glance: bool) -> str:
        """The language of some groups, by all of them or by a glance; where it is unclear, of the half minute round."""
        pcm = self._pcm(Window(tuple(groups)))
        language, sure = self.engine.language_of(self.ears.every, pcm[:_GLANCE] if glance else pcm)
        if sure < _SURE:
            middle = (groups[0][0] + groups[-1][1]) // 2
            wide = self.sound.read(middle - _CONTEXT // 2, middle + _CONTEXT // 2)
            language, _ = self.engine.language_of(self.ears.every, wide)
        return language

    def _best(self, language: str, part: Window) -> tuple[Heard, doctor.Finding]:
        """The first answer if nothing is wrong with it, else the least bad of several, cured.

        A later answer must be better than all before: forbidding repeats cures a loop, but spoils honest text.
        """
        pcm, stretches = self._pcm(part), _stretches(part)
        best: tuple[Heard, doctor.Finding] | None = None
        for model, asked in self._ways(language):
            heard = doctor.without_invention(self.engine.hear(model, pcm, asked), stretches)
            finding = doctor.examine(heard, stretches)
            if best is None or finding.badness < best[1].badness:
                best = heard, finding
                if not finding.reasons:
                    return best
        assert best is not None
        return doctor.unlooped(best[0]), best[1]

    def _ways(self, language: str) -> Iterator[tuple[str, Hearing]]:
        """How a window is asked about: as usual, then with all context, without repeats, by another model or beam.

        Never by chance: sampling depends on what a thread sampled before, so that no two runs would agree.
        """
        first = hearing(self.profile, language)
        again = replace(first, beam=5, full=True)
        yield self.ears.of(language), first
        yield self.ears.of(language), again
        yield self.ears.of(language), replace(again, no_repeat=3, repetition_penalty=1.1)
        if other := self.ears.other(language):
            yield other, again
        yield self.ears.of(language), replace(again, beam=1 if first.beam > 1 else 2, repetition_penalty=1.2)

    def _pcm(self, window: Window) -> Pcm:
        return np.concatenate([self.sound.read(a, b) for a, b in window.groups])


class Transcribe:
    """Speech to text, chunk by chunk. Silence, music and noise give no lines and no error."""

    card = Card(
        name="transcribe",
        version=1,
        scope=Scope.CHUNK,
        needs=("probe", "audio"),
        outputs=("lines",),
        options={"profile": "balanced", "language": ""},
        models=("speech",),
    )

    def run(self, work: Work) -> None:
        """Save `lines.jsonl`: the lines of the windows that begin in this chunk."""
        doc = work.input("audio", "windows").json("windows.json")
        mine = _mine(work, doc)
        found = list(self._listen(work, mine, int(doc["offset"]))) if mine else []
        work.save("lines", "lines.jsonl", dump(found), MEDIA_TYPE)
        work.count("lines", len(found))
        work.note("lines", kinds=["speech"])

    def _listen(self, work: Work, windows: Sequence[Window], offset: int) -> Iterator[Observation]:
        sound = open_sound(work.input("audio", "pcm").path("pcm.wav"))
        language = spoken(str(work.options["language"]))
        listener = Listener(work.engine, ears(work.models["speech"]), sound, str(work.options["profile"]), language)
        for n, window in enumerate(windows):
            work.progress(n / len(windows))
            for line in listener.window(window):
                yield _shifted(line, offset)


def _mine(work: Work, doc: JSON) -> list[Window]:
    """Windows that start in this chunk; the first and the last chunk also take what lies outside the picture."""
    assert work.span is not None
    track = work.facts.video
    ends = [track.end * track.base] if track else [a.end * a.base for a in work.facts.audio]
    start = work.span.start * work.span.base if work.chunk else None
    end = work.span.end * work.span.base
    last = end >= max(ends)
    windows = [Window.from_json(w) for w in doc["windows"]]
    at = [Fraction(w.start + int(doc["offset"]), RATE) for w in windows]
    return [w for w, t in zip(windows, at, strict=True) if (start is None or t >= start) and (last or t < end)]


def _worth_asking(groups: Sequence[Range]) -> Iterator[list[Range]]:
    """Groups one by one; what is too short to tell a language by goes with its neighbour."""
    waiting: list[Range] = []
    for n, group in enumerate(groups):
        waiting.append(group)
        rest = sum(b - a for a, b in groups[n + 1 :])
        if sum(b - a for a, b in waiting) >= _SHORT and (rest >= _SHORT or not rest):
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _stretches(window: Window) -> list[Range]:
    """The groups as they lie in the pcm that is asked about, end to end."""
    out: list[Range] = []
    for a, b in window.groups:
        at = out[-1][1] if out else 0
        out.append((at, at + b - a))
    return out


def _moved(word: Word, window: Window) -> Word:
    """A word of the packed pcm where it lies in the whole; it belongs to the group of its middle."""
    middle = (word.start + word.end) // 2
    pairs = list(zip(_stretches(window), window.groups, strict=True))
    (a, b), (start, _) = next((p for p in pairs if middle < p[0][1]), pairs[-1])
    return replace(word, start=min(max(word.start, a), b) - a + start, end=min(max(word.end, a), b) - a + start)


def _shifted(line: Observation, offset: int) -> Observation:
    span = replace(line.span, start=line.span.start + offset, end=line.span.end + offset)
    return replace(line, span=span, words=tuple((t, a + offset, b + offset, c) for t, a, b, c in line.words))


STAGE = Transcribe()
