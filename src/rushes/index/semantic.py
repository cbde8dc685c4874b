"""What means alike: sentences compared by their directions, all of them, in numpy.

Directions are kept in a file, by the hash of their text: a cache that may be thrown away at any time.
"""

import fcntl
import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rushes.index.port import Posting
from rushes.index.query import Clause, Query, Term
from rushes.telemetry import log

KINDS = ("speech", "text")
MOST = 100_000  # moments that are compared: 0.1 s and 80 MB
NEW = 3_000  # sentences that one question reads for the first time: about 25 s at 117 to 149 a second
_ALIKE = 0.35  # of 1: paraphrases begin there
_BEST = 50
_HASH = 16

Floats = NDArray[np.float32]


class Embeds(Protocol):
    """The part of an engine that is needed."""

    def embed(self, model: str, texts: Sequence[str]) -> Floats:
        """See the port of engines."""


class Finds(Protocol):
    """The part of an index that is needed."""

    def find(self, owner: str, term: Term, most: int, videos: Collection[str] | None = None) -> tuple[Posting, ...]:
        """See the port."""


class About:
    """Compares what is said and written with a sentence."""

    def __init__(self, engine: Embeds, model: str, path: Path) -> None:
        self._engine, self._model, self._path = engine, model, path
        self._known: dict[bytes, Floats] = {}

    def find(
        self, index: Finds, owner: str, term: Term, videos: Collection[str] | None
    ) -> tuple[dict[Posting, float], str]:
        """The moments that mean most alike with how much they do, and what is to be said of it.

        Raises:
            ModelMissing: the weights are not on this machine.
        """
        kinds = tuple(k for k in KINDS if term.of(k))
        there = index.find(owner, Term((), kinds=kinds), MOST, videos) if kinds else ()
        (wanted,) = self._engine.embed(self._model, [term.about])
        left = self._read({p.text for p in there})
        rows = [p for p in there if _key(p.text) in self._known]
        note = f"{left} lines were not compared yet: ask again" if left else ""
        if not rows:
            return {}, note
        alike = np.array([self._known[_key(p.text)] for p in rows], np.float32) @ wanted
        best = np.argsort(-alike, kind="stable")[:_BEST]
        return {rows[n]: round(float(alike[n]), 6) for n in best if alike[n] >= _ALIKE}, note

    def _read(self, texts: Iterable[str]) -> int:
        """Make directions of texts that have none; answers how many still have none."""
        self._load()
        new = sorted(text for text in texts if _key(text) not in self._known)
        some = new[:NEW]
        if some:
            made = self._engine.embed(self._model, some).astype(np.float16)
            self._append([(_key(text), row) for text, row in zip(some, made, strict=True)])
        return len(new) - len(some)

    def _load(self) -> None:
        if self._known or not self._path.exists():
            return
        data = self._path.read_bytes()
        size = int.from_bytes(data[:4], "little")
        step = _HASH + 2 * size
        whole = (len(data) - 4) // step if size else 0  # what a killed process left half written does not count
        for n in range(whole):
            row = data[4 + n * step : 4 + (n + 1) * step]
            self._known[row[:_HASH]] = np.frombuffer(row[_HASH:], "<f2").astype(np.float32)

    def _append(self, rows: Sequence[tuple[bytes, NDArray[np.float16]]]) -> None:
        self._known |= {key: row.astype(np.float32) for key, row in rows}
        try:
            with self._path.open("ab") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                head = b"" if file.tell() else len(rows[0][1]).to_bytes(4, "little")
                step = _HASH + 2 * len(rows[0][1])
                if file.tell() and (file.tell() - 4) % step:
                    file.truncate(4 + (file.tell() - 4) // step * step)
                file.write(head + b"".join(key + row.astype("<f2").tobytes() for key, row in rows))
        except OSError as error:
            log.warning("directions of sentences are not kept: %s", error)


def spelled_out(query: Query) -> Query:
    """The same query by its words alone, where nothing can compare what they mean."""
    return Query(tuple(_spelled(clause) for clause in query.clauses), query.note)


def asks(query: Query) -> bool:
    """Whether something is asked for by what it means."""
    return any(term.about for clause in query.clauses for term in (*clause.terms, *clause.never))


def _spelled(clause: Clause) -> Clause:
    groups = tuple(tuple(word for term in group for word in _words_of(term)) for group in clause.groups)
    return replace(clause, groups=groups, never=tuple(word for term in clause.never for word in _words_of(term)))


def _words_of(term: Term) -> list[Term]:
    return [replace(term, words=(word,), about="") for word in term.words] if term.about else [term]


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()[:_HASH]
