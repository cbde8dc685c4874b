"""Search of pictures by a sentence: embeddings from the index, compared in numpy."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rushes.engines.models.pictures import parse_embedding
from rushes.index.port import Index, Posting, SemanticIndex
from rushes.index.query import PICTURE, Term

MAX_PICTURES = 100_000  # that are compared: half a second
_BEST = 50
_AS_SENTENCES = 0.35  # what the least cosine of a picture counts: that of a sentence

Floats = NDArray[np.float32]


class CaptionEmbedder(Protocol):
    """The part of an engine that is needed."""

    def embed_captions(self, model: str, texts: Sequence[str]) -> Floats:
        """See the port of engines."""


@dataclass(frozen=True, slots=True)
class PictureSearch:
    """Compares pictures with a sentence; `least` is the cosine from which on a picture shows it."""

    engine: CaptionEmbedder
    model: str
    least: float

    def find(
        self, index: Index, owner: str, term: Term, videos: Collection[str] | None
    ) -> tuple[dict[Posting, float], str]:
        """See `SemanticIndex`."""
        there = index.find(owner, Term((), kinds=(PICTURE,)), MAX_PICTURES, videos) if term.of(PICTURE) else ()
        rows = [(posting, row) for posting in there if (row := _embedding(posting, self.model)) is not None]
        note = f"only {MAX_PICTURES} pictures were compared" if len(there) == MAX_PICTURES else ""
        if not rows:
            return {}, note
        (wanted,) = self.engine.embed_captions(self.model, [term.sentence])
        fitting = [(posting, row) for posting, row in rows if len(row) == len(wanted)]
        if not fitting:
            return {}, note
        cosines = np.stack([row for _, row in fitting]) @ wanted
        best = [n for n in np.argsort(-cosines, kind="stable")[:_BEST] if cosines[n] >= self.least]
        return {fitting[n][0]: self._score(float(cosines[n])) for n in best}, note

    def _score(self, cosine: float) -> float:
        share = (cosine - self.least) / max(1e-9, 1 - self.least)
        return round(_AS_SENTENCES + share * (1 - _AS_SENTENCES), 6)


@dataclass(frozen=True, slots=True)
class BothSearches:
    """What is said and written, and what is seen."""

    sentences: SemanticIndex
    pictures: SemanticIndex

    def find(
        self, index: Index, owner: str, term: Term, videos: Collection[str] | None
    ) -> tuple[dict[Posting, float], str]:
        """See `SemanticIndex`."""
        seen, first = self.pictures.find(index, owner, term, videos)
        said, second = self.sentences.find(index, owner, term, videos) if term.kinds != (PICTURE,) else ({}, "")
        return {**seen, **said}, "; ".join(filter(None, (first, second)))


def _embedding(posting: Posting, model: str) -> Floats | None:
    made_by, _, text = posting.text.rpartition(" ")
    try:
        return parse_embedding(text) if made_by == model else None
    except ValueError:
        return None
