"""The remote engine: every call is packed and answered elsewhere, by the same models with the same numbers."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rushes.domain.errors import InferenceFailed
from rushes.domain.keys import JSON
from rushes.engines.port import (
    BATCH,
    DecodingOptions,
    Detection,
    Face,
    Pcm,
    Phrase,
    Pictures,
    TextLine,
    Transcription,
    Word,
)
from rushes.engines.wire import REVISION, pack, pack_floats, pack_pictures, unpack, unpack_floats

LARGE_BATCH = 32  # pictures of one question to an asynchronous endpoint: each costs it seconds, and is at most 1 MB
Post = Callable[[str, bytes], bytes]  # a capability and a call -> the answer


class RemoteEngine:
    """Asks by `post`: the worker of a slot, or an inference service."""

    loading = 0.0  # is the service's

    def __init__(self, post: Post, batch: int = BATCH) -> None:
        self._post, self.batch = post, batch

    def detect_speech(self, pcm: Pcm) -> Sequence[tuple[int, int]]:
        """Spans of samples with speech, in order."""
        doc, _ = self._ask("hear", {"what": "speech"}, [pack_floats(pcm)])
        return [(int(a), int(b)) for a, b in doc["spans"]]

    def detect_language(self, model: str, pcm: Pcm) -> tuple[str, float]:
        """The language of up to 30 s of speech, and its probability."""
        doc, _ = self._ask("hear", {"what": "language", "model": model}, [pack_floats(pcm)])
        return str(doc["language"]), float(doc["probability"])

    def transcribe(self, model: str, pcm: Pcm, options: DecodingOptions) -> Transcription:
        """The words of up to 30 s of speech, with times."""
        call = {"what": "words", "model": model, "options": asdict(options)}
        doc, _ = self._ask("hear", call, [pack_floats(pcm)])
        phrases = tuple(Phrase(**{**p, "words": tuple(Word(**w) for w in p["words"])}) for p in doc["phrases"])
        return Transcription(doc["language"], doc["language_confidence"], phrases)

    def read_text(
        self, model: str, pictures: Pictures, side: int, languages: Sequence[str] = (), *, use_gpu: bool = True
    ) -> list[Sequence[TextLine]]:
        """The lines of text in each picture."""
        call = {"model": model, "side": side, "languages": list(languages)} | ({} if use_gpu else {"use_gpu": False})
        found = self._look("read", pictures, **call)
        return [[TextLine(**{**line, "corners": _points(line["corners"])}) for line in some] for some in found]

    def detect_objects(self, model: str, pictures: Pictures, least: float) -> list[Sequence[Detection]]:
        """Objects with at least that confidence, most confident first."""
        found = self._look("detect", pictures, what="objects", model=model, least=least)
        return [[Detection(**{**d, "box": tuple(d["box"])}) for d in some] for some in found]

    def detect_faces(self, model: str, pictures: Pictures, least: float, side: int) -> list[Sequence[Face]]:
        """Faces with at least that confidence, most confident first."""
        found = self._look("detect", pictures, what="faces", model=model, least=least, side=side)
        return [[_face(doc) for doc in some] for some in found]

    def classify_place(self, model: str, pictures: Pictures, most: int) -> list[Sequence[tuple[str, float]]]:
        """The likeliest scene classes with their probabilities, likeliest first."""
        found = self._look("detect", pictures, what="places", model=model, most=most)
        return [[(str(label), float(share)) for label, share in some] for some in found]

    def inverse_depth(self, model: str, pictures: Pictures, *, inverse: bool | None) -> list[NDArray[np.float32]]:
        """A map of inverse depth."""
        shapes, parts = pack_pictures(pictures)
        doc, maps = self._ask("depth", {"model": model, "inverse": inverse, "shapes": shapes}, parts)
        return [unpack_floats(part, shape) for shape, part in zip(doc["shapes"], maps, strict=True)]

    def embed(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One embedding of length one for each sentence."""
        return self._embed({"model": model, "texts": list(texts)})

    def embed_pictures(self, model: str, pictures: Pictures) -> NDArray[np.float32]:
        """One embedding of length one for each picture."""
        shapes, parts = pack_pictures(pictures)
        return self._embed({"what": "pictures", "model": model, "shapes": shapes}, parts)

    def embed_captions(self, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """One embedding of length one for each text, near those of the pictures that show it."""
        return self._embed({"what": "captions", "model": model, "texts": list(texts)})

    def _embed(self, call: JSON, parts: Sequence[bytes] = ()) -> NDArray[np.float32]:
        doc, (rows,) = self._ask("embed", call, parts)
        return unpack_floats(rows, doc["shape"])

    def _look(self, capability: str, pictures: Pictures, **call: Any) -> list[JSON]:
        shapes, parts = pack_pictures(pictures)
        doc, _ = self._ask(capability, {**call, "shapes": shapes}, parts)
        return list(doc["pictures"])

    def _ask(self, capability: str, call: JSON, parts: Sequence[bytes] = ()) -> tuple[JSON, list[bytes]]:
        doc, found = unpack(self._post(capability, pack({**call, "revision": REVISION}, parts)))
        asked, used = call.get("model", ""), doc.get("model")
        if ("@" in asked and used != asked) or doc.get("revision") != REVISION:
            raise InferenceFailed(f"{asked or 'a model'} was requested, but {str(used)[:200]!r} answered")
        return doc, found


def _face(doc: JSON) -> Face:
    return Face(doc["confidence"], tuple(doc["box"]), _points(doc["points"]), tuple(doc["embedding"]), doc["sharpness"])


def _points(doc: JSON) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(point) for point in doc)
