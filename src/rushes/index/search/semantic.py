"""Semantic search: sentences compared by their embeddings, all of them, in numpy.

Embeddings are kept in a file, by the hash of their text: a cache that may be thrown away at any time.
"""

import hashlib
import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rushes.files import open_private, wait_for_lock
from rushes.index.port import Index, Posting
from rushes.index.query import Term
from rushes.telemetry import log

MODEL = "minilm-l6"
KINDS = ("speech", "text")
MAX_PASSAGES = 100_000  # passages that are compared: 0.1 s and 80 MB
MAX_NEW_SENTENCES = 3_000  # sentences that one question reads for the first time: about 25 s at 117 to 149 a second
_LEAST_SIMILARITY = 0.35  # of 1: paraphrases begin there
_BEST = 50
_HASH = 16

Floats = NDArray[np.float32]


class TextEmbedder(Protocol):
    """The part of an engine that is needed."""

    def embed(self, model: str, texts: Sequence[str]) -> Floats:
        """See the port of engines."""


def open_semantic(engine: TextEmbedder, model: str, folder: Path) -> "SemanticSearch":
    """Semantic search by a model of an engine; what another model said is kept apart."""
    return SemanticSearch(engine, model, folder / f"{model}.embeddings")


class SemanticSearch:
    """Compares what is said and written with a sentence."""

    def __init__(self, engine: TextEmbedder, model: str, path: Path) -> None:
        self._engine, self._model, self._path = engine, model, path
        self._known: dict[bytes, Floats] = {}

    def find(
        self, index: Index, owner: str, term: Term, videos: Collection[str] | None
    ) -> tuple[dict[Posting, float], str]:
        """See `search.SemanticIndex`."""
        kinds = tuple(k for k in KINDS if term.of(k))
        there = index.find(owner, Term((), kinds=kinds), MAX_PASSAGES, videos) if kinds else ()
        (wanted,) = self._engine.embed(self._model, [term.sentence])
        left = self._read({p.text for p in there})
        rows = [p for p in there if _key(p.text) in self._known]
        note = f"{left} lines are not compared yet: search again" if left else ""
        if not rows:
            return {}, note
        similarity = np.array([self._known[_key(p.text)] for p in rows], np.float32) @ wanted
        best = np.argsort(-similarity, kind="stable")[:_BEST]
        return {rows[n]: round(float(similarity[n]), 6) for n in best if similarity[n] >= _LEAST_SIMILARITY}, note

    def _read(self, texts: Iterable[str]) -> int:
        """Make embeddings of texts that have none; answers how many still have none."""
        self._load()
        new = sorted(text for text in texts if _key(text) not in self._known)
        some = new[:MAX_NEW_SENTENCES]
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
            with os.fdopen(open_private(self._path, os.O_WRONLY | os.O_APPEND), "ab") as file:
                wait_for_lock(file)
                head = b"" if file.tell() else len(rows[0][1]).to_bytes(4, "little")
                step = _HASH + 2 * len(rows[0][1])
                if file.tell() and (file.tell() - 4) % step:
                    file.truncate(4 + (file.tell() - 4) // step * step)
                file.write(head + b"".join(key + row.astype("<f2").tobytes() for key, row in rows))
        except OSError as error:
            log.warning("sentence embeddings are not stored: %s", error)


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()[:_HASH]
