"""A library of thirty films in which everything that can be found was planted, through ledger and artifacts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from rushes.domain.job import NewJob
from rushes.domain.keys import JSON, canonical, manifest_key, task_id
from rushes.domain.observation import MEDIA_TYPE, Observation, dump
from rushes.domain.result import Artifact, Manifest, Provenance, Result, result_of
from rushes.domain.span import Span
from rushes.domain.task import Draft, Finish
from rushes.domain.worker import Incarnation
from rushes.engines.models.vision import pack_embeddings
from rushes.library import Library

SAMPLE, TICK = Fraction(1, 16000), Fraction(1, 90000)
WORD = 4000  # samples: each planted word lasts a quarter of a second
STAGES = {"speech": "transcribe", "text": "segments", "entity": "segments", "object": "objects", "place": "places"}
WORKER = Incarnation("arm-4.host.boot.w1", "host", "boot", 1, "1", machine="arm-4")
_FACES = {"anna": (1, 0, 0, 0.1), "bert": (0, 1, 0, 0.1), "carl": (0, 0, 1, 0.1)}


@dataclass
class Film:
    """What is planted in one film; times are seconds."""

    number: int
    lines: list[Observation] = field(default_factory=list)
    faces: list[tuple[Observation, tuple[float, ...]]] = field(default_factory=list)

    @property
    def id(self) -> str:
        return f"vid_film{self.number:02d}"

    def say(self, at: float, text: str, language: str = "en") -> "Film":
        """Words that follow each other from a moment on."""
        start = round(at * 16000)
        said = [(w, start + n * WORD, start + (n + 1) * WORD, 0.9) for n, w in enumerate(text.split())]
        span = Span(start, said[-1][2], SAMPLE)
        self.lines.append(Observation("speech", span, text, 0.9, language, tuple(said)))
        return self

    def show(self, start: float, end: float, text: str, kind: str = "text", language: str = "en") -> "Film":
        """Text on the screen."""
        span = Span(round(start * 90000), round(end * 90000), TICK)
        self.lines.append(Observation(kind, span, text, 0.95, language, box=(0.1, 0.1, 0.5, 0.1)))
        return self

    def see(self, start: int, end: int, label: str, kind: str = "object") -> "Film":
        """A thing or a place, look after look."""
        for second in range(start, end):
            self.lines.append(Observation(kind, _second(second), label, 0.8, box=(0.2, 0.2, 0.3, 0.3)))
        return self

    def face(self, start: int, end: int, who: str, x: float = 0.4) -> "Film":
        """A face, look after look, never quite the same."""
        for second in range(start, end):
            wobble = 0.05 * ((second * 7 + self.number) % 5 - 2)
            direction = np.array(_FACES[who], np.float64) + wobble * np.array([0.3, 0.2, -0.3, 1.0])
            extra = {"row": len(self.faces), "points": [[x, 0.25], [x + 0.05, 0.25]], "eyes": 40, "sharpness": 100}
            seen = Observation("face", _second(second), "", 0.9, box=(x, 0.2, 0.1, 0.2), extra=extra)
            self.faces.append((seen, tuple(direction / np.linalg.norm(direction))))
        return self


def _second(n: int) -> Span:
    return Span(n * 90000, (n + 1) * 90000, TICK)


def plant(library: Library, film: Film, take: str = "", profile: str = "balanced") -> str:
    """A job of the film with everything done; answers its id."""
    ledger, owner, job = library.home.ledger, library.home.settings.owner, f"job_film{film.number:02d}{take}"
    ledger.renew(WORKER, {}, {})
    probe = task_id(job, "probe", None)
    name = f"clip_{film.number:02d}.mp4"
    ledger.submit(
        NewJob(job, owner, job, name, "everything", "{}"),
        Draft(probe, job, "probe", None, _spec({"facts": f"{job}-facts"})),
    )
    fences = _claimed(library)
    made = {stage: _key(job, stage) for stage in dict.fromkeys([*STAGES.values(), "faces"])}
    drafts = [
        Draft(task_id(job, stage, None), job, stage, None, _spec({stage: key}), order=n)
        for n, (stage, key) in enumerate(made.items(), 1)
    ]
    ledger.draft(job, probe, fences[probe], drafts, canonical(_facts(film, name)).decode())
    ledger.complete(WORKER.id, [Finish(probe, fences[probe], (), seconds=1.0)])
    fences = _claimed(library)
    for stage, key in made.items():
        kinds = [kind for kind, of in STAGES.items() if of == stage] or ["face"]
        result = _saved(library, key, stage, [o for o in film.lines if o.kind in kinds], kinds, film, profile)
        task = task_id(job, stage, None)
        ledger.complete(WORKER.id, [Finish(task, fences[task], (result,), seconds=1.0)])
    return job


def _saved(
    library: Library, key: str, stage: str, lines: Sequence[Observation], kinds: list[str], film: Film, profile: str
) -> Result:
    blobs, owner = library.home.blobs, library.home.settings.owner
    facts: dict[str, JSON] = {"kinds": kinds}
    artifacts = []
    if stage == "faces":
        lines = [face for face, _ in film.faces]
        vectors = blobs.put(owner, pack_embeddings(np.array([v for _, v in film.faces] or [(0.0,) * 4])))
        artifacts.append(Artifact("embeddings.f16", vectors.sha256, vectors.size, "application/octet-stream"))
        facts["dimensions"] = 4
    blob = blobs.put(owner, dump(lines))
    artifacts.append(Artifact(f"{stage}.jsonl", blob.sha256, blob.size, MEDIA_TYPE))
    origin = Provenance("r", stage, "planted", "1", profile, "c", "i", 1)
    manifest = Manifest(key, stage, tuple(artifacts), origin, count=len(lines), facts=facts)
    blobs.create(manifest_key(owner, key), manifest.to_bytes())
    return result_of(manifest, "sha")


def _claimed(library: Library) -> dict[str, int]:
    return {lease.task: lease.fence for lease in library.home.ledger.claim(WORKER.id, ["cpu"], 50)}


def _key(job: str, stage: str) -> str:
    return f"{job}-{stage}"


def _spec(results: dict[str, str]) -> str:
    return canonical({"results": results, "span": None}).decode()


def _facts(film: Film, name: str) -> JSON:
    shot = f"20{10 + film.number // 12:02d}-{1 + film.number % 12:02d}-05T10:00:00Z"
    path = f"{'holiday' if film.number % 3 == 0 else 'office'}/{name}"
    doc = {"video": film.id, "name": name, "path": path, "duration_us": 60_000_000, "width": 64, "height": 36}
    return doc | {"shot_at": shot, "start": [0, 1], "trial": False}


def films() -> list[Film]:
    """Thirty films; the first ten hold what is looked for, the others are alike enough to be in the way."""
    out = [
        Film(1).say(10, "the budget for next year is tight").show(9, 15, "Q3 Results").see(8, 14, "laptop"),
        Film(2).say(10, "the budget").show(20, 25, "Q3 Results").face(9, 12, "bert"),
        Film(3).say(10, "budget").see(13, 15, "laptop").see(40, 42, "laptop"),
        Film(4)
        .say(10, "we will not ask what your")
        .say(11.75, "country can do for you.")
        .say(13.5, "Tomorrow we ask."),
        Film(5).say(3, "Où est l'été dernier", "fr").say(20, "the summer of last year"),
        Film(6).show(2, 8, "SALE 50% off").show(2, 8, "50%", "entity").show(30, 34, "no sale today"),
        Film(7).see(5, 8, "dog").see(6, 9, "surfboard").see(0, 20, "beach", "place"),
        Film(8).see(5, 8, "dog").see(30, 40, "beach", "place").see(0, 20, "unknown", "place"),
        Film(9).face(5, 9, "bert").say(6, "hello from the studio").show(0, 20, "Live Studio"),
        Film(10).face(5, 9, "anna", 0.2).face(7, 12, "bert", 0.6).say(15, "goodbye. hello again"),
    ]
    out[0].face(8, 14, "anna")
    out += [_filler(n) for n in range(11, 31)]
    return out


def _filler(n: int) -> Film:
    film = Film(n).say(5, f"filler words of film {n}").say(12, "nothing to see here")
    if n % 2 == 0:
        film.see(4, 6, "chair")
    if n % 5 == 0:
        film.say(20, "guten Morgen zusammen", "de").show(19, 23, "Tagesordnung", language="de")
    if n == 17:
        film.face(3, 6, "carl").say(30, "one hundred and 1,000 reasons")
    return film


def planted(library: Library, some: Iterable[Film]) -> None:
    """Plant them all."""
    for film in some:
        plant(library, film)
