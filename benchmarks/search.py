"""How search grows: 100,000 and 1,000,000 observations, questions of three terms and time, beside plain FTS5.

Every film holds the same mix; what is looked for is planted a fixed number of times, so that answers stay as long as
they were. Run: python -m benchmarks.search [most observations]
"""

import json
import random
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

from rushes.domain.observation import Observation
from rushes.domain.span import Span
from rushes.index import sqlite
from rushes.index.changes import IndexedResult, Run, RunUpdate, SelectionUpdate
from rushes.index.search import search
from rushes.index.sqlite import SqliteIndex
from rushes.index.tokenizer import words
from rushes.statements import statements

PER_FILM = 2_000
PLANTED = 5  # films that hold what is looked for, however many there are
COMMON = [f"word{n}" for n in range(2_000)]
THINGS = ["laptop", "chair", "person", "car", "dog", "cup", "phone", "book"]
QUERIES = {
    "one rare word": "budget",
    "phrase": '"budget for next"',
    "rare and common, at one time": "say:budget text:quarter object:laptop",
    "near": "say:budget near:5s text:quarter near:5s object:laptop",
    "before": "say:budget before text:quarter near:10s object:chair",
    "during": "say:budget during text:quarter near:5s object:laptop",
    "three common terms": "say:word1 near:5s say:word2 near:5s object:chair",
}
ASKED = ("count", "find", "find_in_windows", "catalog", "catalog_by_id", "find_any")


def film(n: int) -> Iterator[Observation]:
    """Speech, text and things of one film; some films hold what is looked for."""
    chance = random.Random(n)
    for at in range(PER_FILM // 4):
        said = " ".join(chance.choices(COMMON, weights=_weights(), k=9)) + "."
        yield Observation("speech", _span(at * 4, 3.5), said, 0.9, "en")
        yield Observation("text", _span(at * 4, 4.0), f"{chance.choice(COMMON)} slide", 0.9, "en")
        for second in (0, 2):
            yield Observation("object", _span(at * 4 + second, 1.0), chance.choice(THINGS), 0.9)
    if n < PLANTED:
        yield Observation("speech", _span(401, 2.0), "the budget for next year.", 0.9, "en")
        yield Observation("text", _span(400, 6.0), "last quarter", 0.9, "en")
        yield Observation("object", _span(403, 1.0), "laptop", 0.9)


_KEPT: list[float] = []


def _weights() -> list[float]:
    """As words are: the commonest in one line of three."""
    if not _KEPT:
        _KEPT.extend(1 / (n + 25) for n in range(len(COMMON)))
    return _KEPT


def _span(second: float, length: float) -> Span:
    return Span(round(second * 1000), round((second + length) * 1000), Fraction(1, 1000))


def fill(index: SqliteIndex, plain: sqlite3.Connection, observations: int) -> None:
    """The films in both."""
    for n in range(observations // PER_FILM):
        video, lines = f"vid_{n:05d}", list(film(n))
        run = Run(f"job_{n}", "anna", video, "everything", "completed", "2026", {"video": video, "name": f"{n}.mp4"})
        kinds = sorted({line.kind for line in lines})
        offers = [IndexedResult("anna", video, run.job, kind, None, kind, f"{video}-{kind}", "sha") for kind in kinds]
        index.apply(RunUpdate(run, offers))
        index.apply(SelectionUpdate("anna", video, [(o, [x for x in lines if x.kind == o.kind]) for o in offers], ()))
        plain.executemany("INSERT INTO plain VALUES (?, ?)", [(x.kind, " ".join(words(x.text))) for x in lines])
    plain.commit()


def timed(ask: Callable[[], object], times: int = 9) -> float:
    """The least of some askings in milliseconds of this process: other work on the machine is no part of it."""
    took = []
    for _ in range(times):
        begun = time.process_time()
        ask()
        took.append((time.process_time() - begun) * 1000)
    return min(took)


def plans(path: Path) -> list[str]:
    """Plans of questions in which a table is read from end to end."""
    known = {
        "windows": '[["v", 0, 1]]',
        "kinds": '["speech"]',
        "videos": '["v"]',
        "limit": 9,
        "ids": "[]",
        "first": "a",
    }
    bad, asked = list[str](), statements(Path(sqlite.__file__).with_name("statements.sql"))
    with sqlite3.connect(path) as db:
        for name in ASKED:
            sql = asked[name]
            values = {n: known.get(n, "word") for n in re.findall(r":(\w+)", sql)} or ("anna",)
            plan = " | ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values))
            bad += [f"{name}: {plan}"] if re.search(r"SCAN (passage|line|video|extent)\b", plan) else []
    return bad


def measure(observations: int) -> tuple[dict[str, tuple[float, int]], float, list[str]]:
    """Milliseconds and hits of each question, of plain FTS5 for a phrase, and plans that scan."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.sqlite"
        index, plain = SqliteIndex(path), sqlite3.connect(Path(folder) / "plain.sqlite")
        plain.execute("CREATE VIRTUAL TABLE plain USING fts5 (kind, words, tokenize = 'ascii')")
        fill(index, plain, observations)
        asked = {
            name: (timed(lambda q=q: search(index, "anna", q)), search(index, "anna", q).total)  # type: ignore[misc]
            for name, q in QUERIES.items()
        }
        sql = "SELECT rowid FROM plain WHERE plain MATCH '\"budget for next\"' ORDER BY rank LIMIT 20"
        peer = timed(lambda: plain.execute(sql).fetchall())
        index.close()
        plain.close()
        return asked, peer, plans(path)


def main(most: int) -> int:
    """Print the figures; 1 if something grows or scans."""
    sizes = [most // 10, most]
    found = {size: measure(size) for size in sizes}
    small, large = (found[size] for size in sizes)
    print(f"{'question':32} {sizes[0]:>12,} {sizes[1]:>12,}  growth   hits")
    worst = 0.0
    for name, query in QUERIES.items():
        (before, _), (after, hits) = small[0][name], large[0][name]
        growth = after / max(before, 0.1)
        worst = max(worst, growth) if re.search(r" (near:|before |during )", query) else worst
        print(f"{name:32} {before:9.1f} ms {after:9.1f} ms  {growth:5.2f}x {hits:6}")
    print(f"{'plain FTS5, the phrase':32} {small[1]:9.1f} ms {large[1]:9.1f} ms")
    scans = large[2]
    print(json.dumps({"worst_growth": round(worst, 2), "scans": scans}))
    return int(worst > 2 or bool(scans))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
