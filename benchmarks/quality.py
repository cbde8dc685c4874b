"""Quality: words, text, faces, objects and cuts of known footage, per profile, as the whole recipe finds them."""

import argparse
import json
import re
import resource
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.media_films import make_film
from benchmarks.speech import DEFAULT, wrong
from rushes.blobs.manifests import read_manifest
from rushes.domain.keys import JSON
from rushes.domain.observation import Observation, load
from rushes.domain.result import Manifest
from rushes.engines.images import decode_jpeg
from rushes.engines.local import LocalEngine
from rushes.engines.models.vision import SAME_PERSON, input_side, unpack_embeddings
from rushes.jobs.intake import JobRequest
from rushes.library import Library
from rushes.plan.planner import results_of

RATE = 25  # frames a second of demo_55s
PROFILES = ("fast", "balanced", "high_quality")
MOST_WORDS_WRONG, LEAST_LINES, MOST_STRAY = 3, 16, 1  # of demo_55s, profile balanced


@dataclass(frozen=True)
class Seen:
    """Everything that one run found, and what it cost."""

    rows: dict[str, list[Observation]]
    cuts: list[int]
    directions: np.ndarray
    cpu: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=Path, default=DEFAULT)
    parser.add_argument("--profile", action="append", choices=PROFILES)
    asked = parser.parse_args()
    film = asked.samples / "video" / "demo_55s.mp4"
    if not film.exists():
        print("the samples are not here: nothing was measured")
        return 0
    profiles = asked.profile or PROFILES
    characters(asked.samples / "ocr", profiles)
    held = [demo(film, profile) for profile in profiles]
    moving(profiles)
    return 0 if all(held) else 1


def characters(folder: Path, profiles: Sequence[str]) -> None:
    """Text by itself: ten frames with known lines."""
    truth = json.loads((folder / "truth.json").read_text())
    with tempfile.TemporaryDirectory() as home, Library(home) as library:
        engine = LocalEngine(library.models)
        for profile in profiles:
            model = "ppocr-v6-tiny" if profile == "fast" else "ppocr-v6-small"
            library.models.pull([model])
            start, bad, total = cpu(), 0, 0
            for name, lines in truth.items():
                picture = decode_jpeg((folder / f"{name}.jpg").read_bytes())
                found = [
                    line.text
                    for line in engine.read_text(model, [picture], input_side("text", profile))[0]
                    if line.confidence >= 0.6
                ]
                bad += sum(_nearest(" ".join(line.split()), found) for line in lines)
                total += sum(len(" ".join(line.split())) for line in lines)
            pace = (cpu() - start) / len(truth)
            print(
                f"ocr frames   {profile:13} CER {bad / total:.2%} ({bad} of {total}), {pace:.2f} CPU s a frame, {model}"
            )


def demo(film: Path, profile: str) -> bool:
    """The whole recipe on demo_55s; prints one line a question, and says whether the bars hold."""
    truth = json.loads(film.with_suffix(".truth.json").read_text())
    with tempfile.TemporaryDirectory() as home:
        seen = _run(film, Path(home), profile)
    words, said = wrong(" ".join(t["text"] for t in truth["transcript"]), _text(seen.rows["speech"]))
    lines = [line for part in truth["segments"] for line in part.get("text", ())]
    read = [o.text for o in seen.rows.get("text", [])]
    hit = sum(line in read for line in lines)
    stray = len(read) - hit
    people, faces = _people(seen, truth["segments"])
    things = [_has(seen.rows["object"], part) for part in truth["segments"] if part.keys() & {"objects", "objects_any"}]
    cuts = len(set(seen.cuts) & set(truth["cuts_frames"]))
    minute = seen.cpu / truth["duration_s"] * 60
    print(f"demo_55s     {profile:13} words wrong {words} of {said}")
    f1 = _f1(hit, stray, len(lines))
    print(f"demo_55s     {profile:13} text lines {hit} of {len(lines)}, {stray} stray, F1 {f1:.3f}")
    print(f"demo_55s     {profile:13} faces of two people {faces}, told apart as {people} people")
    print(f"demo_55s     {profile:13} objects listed {sum(things)} of {len(things)} scenes")
    print(f"demo_55s     {profile:13} cuts {cuts} of {len(truth['cuts_frames'])}, {len(seen.cuts) - cuts} false")
    print(f"demo_55s     {profile:13} {seen.cpu:.1f} CPU s, {minute:.1f} for a minute (at most {_budget(profile):.0f})")
    good = hit >= LEAST_LINES and stray <= MOST_STRAY and people == 2 and all(things) and minute <= _budget(profile)
    return profile != "balanced" or (good and words <= MOST_WORDS_WRONG and cuts == len(truth["cuts_frames"]))


def moving(profiles: Sequence[str]) -> None:
    """What a minute of 720p costs that never stands still: there is a new picture to look at every second."""
    with tempfile.TemporaryDirectory() as folder:
        film = make_film(Path(folder) / "moving.mp4", (1280, 720), 60, seed=1).path
        for profile in profiles:
            spent = _run(film, Path(folder) / profile, profile).cpu
            print(f"moving       {profile:13} {spent:.1f} CPU s for a minute that moves all the time")


def _run(film: Path, home: Path, profile: str) -> Seen:
    uncaged = {"sandbox": ("off", "the kernel does not count a slot in a cage")}
    with Library(home / "home", options=uncaged) as library:
        start = cpu()
        (job,) = library.run([film], JobRequest(profile=profile), beside=False).jobs
        spent = cpu() - start
        rows: dict[str, list[Observation]] = {}
        cuts, directions = list[int](), np.zeros((0, 128), np.float32)
        for manifest in _manifests(library, job.id):
            assert not any("stub" in model for model in manifest.provenance.models)
            for name, data in _files(library, manifest):
                if name.endswith(".jsonl") and manifest.provenance.stage != "read_text":  # segments sift it
                    _sort(rows, data)
                elif name == "shots.json":
                    cuts = [round(shot["start_us"] * RATE / 1_000_000) for shot in json.loads(data)][1:]
                elif name == "embeddings.f16":
                    directions = unpack_embeddings(data, int(manifest.facts["dimensions"]))
        return Seen(rows, cuts, directions, spent)


def _manifests(library: Library, job: str) -> Iterator[Manifest]:
    for task in library.jobs.tasks(job):
        for key in results_of(task.spec).values():
            yield read_manifest(library.home.blobs, library.home.settings.owner, key)


def _files(library: Library, manifest: Manifest) -> Iterator[tuple[str, bytes]]:
    for artifact in manifest.artifacts:
        if artifact.size < 10_000_000:
            with library.home.blobs.open(library.home.settings.owner, artifact.sha256) as f:
                yield artifact.name, f.read()


def _sort(rows: dict[str, list[Observation]], data: bytes) -> None:
    for row in load(data):
        rows.setdefault(row.kind, []).append(row)


def _people(seen: Seen, parts: Sequence[JSON]) -> tuple[int, int]:
    """How many people the faces of the two-face photo are, and how many faces there are."""
    (part,) = [p for p in parts if p.get("faces") == 2]
    rows = [r for r in seen.rows.get("face", []) if part["start"] <= r.span.start_us / 1e6 < part["end"]]
    known: list[np.ndarray] = []
    for row in rows:
        way = seen.directions[int(row.extra["row"])]
        if not any(float(way @ other) >= SAME_PERSON for other in known):
            known.append(way)
    return len(known), len(rows)


def _has(rows: Sequence[Observation], part: JSON) -> bool:
    found = {r.text for r in rows if part["start"] <= r.span.start_us / 1e6 < part["end"]}
    return set(part.get("objects", ())) <= found and bool(set(part.get("objects_any", found)) & found)


def _nearest(line: str, found: Sequence[str]) -> int:
    return min((_apart(line, other) for other in found), default=len(line))


def _apart(a: str, b: str) -> int:
    """The smallest number of characters to insert, drop or change; never more than are in the first."""
    row = list(range(len(b) + 1))
    for n, letter in enumerate(a, 1):
        corner, row[0] = row[0], n
        for m, other in enumerate(b, 1):
            corner, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, corner + (letter != other))
    return min(row[-1], len(a))


def _f1(hit: int, stray: int, wanted: int) -> float:
    return 2 * hit / max(1, 2 * hit + stray + wanted - hit)


def _text(lines: Sequence[Observation]) -> str:
    return re.sub(r"\s+", " ", " ".join(line.text for line in lines))


def _budget(profile: str) -> float:
    return 60.0 if profile == "fast" else 120.0


def cpu() -> float:
    """Processor seconds of this process and of the slots that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


if __name__ == "__main__":
    raise SystemExit(main())
