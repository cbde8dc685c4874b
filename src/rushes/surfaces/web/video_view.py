"""What a video's page shows of it: lines by kind, things seen merged over time, shots, hits and lanes in film time."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rushes.domain.errors import NotFound
from rushes.domain.observation import Observation
from rushes.library import Library
from rushes.library.search import Hit
from rushes.library.videos import Video
from rushes.surfaces.words import unnamed_person

APART_US = 2_000_000  # the same thing seen again within that time is one stretch
MOST_LINES = 3000  # of a kind on one page: more than a day of speech in one film
MOST_HITS = 200
LANES = 4  # people and objects that have a lane of their own
Stretch = tuple[int, int, bool]  # from, to, and whether it is sure
SURE = 0.6


@dataclass(frozen=True, slots=True)
class Thing:
    """Something seen: what it is called, and every stretch of film time in which it is there."""

    label: str
    id: str  # of a person, else ""
    stretches: tuple[Stretch, ...]
    unnamed: bool = False

    @property
    def seen_us(self) -> int:
        """How long it is there."""
        return sum(end - start for start, end, _ in self.stretches)


@dataclass(frozen=True, slots=True)
class VideoView:
    """Everything on a video's page that grows while its job runs."""

    speech: tuple[Observation, ...]
    text: tuple[Observation, ...]
    people: list[Thing]
    objects: list[Thing]
    places: list[Thing]
    shots: list[tuple[int, int]]
    hits: tuple[Hit, ...]

    @property
    def found(self) -> dict[int, Hit]:
        """What is looked for in what is said, by the line it is in."""
        return {hit.line.start_us: hit for hit in self.hits if hit.kind == "speech"}


def view_of(library: Library, video: Video, query: str) -> VideoView:
    """What is known by now."""
    lines = {k: library.videos.lines(video.id, k) for k in ("speech", "text", "person", "object", "place")}
    hits = library.search(query, MOST_HITS, video=video.id, order="time").hits if query else ()
    return VideoView(
        speech=lines["speech"][:MOST_LINES],
        text=lines["text"][:MOST_LINES],
        people=_people(things(lines["person"])),
        objects=things(lines["object"]),
        places=[t for t in things(lines["place"]) if t.label != "unknown"],
        shots=_shots(library, video),
        hits=hits,
    )


def things(lines: Iterable[Observation]) -> list[Thing]:
    """What is seen, each with its stretches; what is there longest comes first."""
    seen: dict[tuple[str, str], list[Observation]] = {}
    for line in lines:
        seen.setdefault((line.text, str(line.extra.get("person", ""))), []).append(line)
    made = [Thing(label, id, _stretches(some)) for (label, id), some in seen.items()]
    return sorted(made, key=lambda t: (-t.seen_us, t.label))


def lanes(film: VideoView) -> list[dict[str, object]]:
    """The timeline: one lane per kind, and one for each of the people and objects that are there most."""
    rows: list[dict[str, object]] = []
    rows += _lane("Speech", "speech", [(o.span.start_us, o.span.end_us, o.confidence >= SURE, "") for o in film.speech])
    rows += _lane("Text on screen", "text", [(o.span.start_us, o.span.end_us, True, o.text) for o in film.text])
    for name, seen in (("person", film.people), ("object", film.objects), ("place", film.places)):
        for thing in seen[:LANES]:
            rows += _lane(thing.label, name, [(*stretch, "") for stretch in thing.stretches])
    return rows


def _lane(label: str, kind: str, spans: Sequence[tuple[int, int, bool, str]]) -> list[dict[str, object]]:
    return [{"label": label, "kind": kind, "spans": spans}] if spans else []


def _people(seen: list[Thing]) -> list[Thing]:
    """Who has a name comes first; who has none is called as on the page of people."""
    named = [t for t in seen if t.label != t.id]
    return named + [Thing(unnamed_person(t.id), t.id, t.stretches, unnamed=True) for t in seen if t.label == t.id]


def _stretches(lines: Sequence[Observation]) -> tuple[Stretch, ...]:
    made: list[Stretch] = []
    for line in sorted(lines, key=lambda o: o.span.start_us):
        start, end, sure = line.span.start_us, line.span.end_us, line.confidence >= SURE
        if made and start - made[-1][1] <= APART_US:
            made[-1] = (made[-1][0], max(made[-1][1], end), made[-1][2] or sure)
        else:
            made.append((start, end, sure))
    return tuple(made)


def _shots(library: Library, video: Video) -> list[tuple[int, int]]:
    with suppress(NotFound):  # not there yet, or not asked for
        return library.videos.shots(video)
    return []
