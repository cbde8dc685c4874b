"""Calls that came over a line, answered by an engine: the other side of the remote engine."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rushes.domain.errors import ModelMissing, NotFound, OtherModel, Refused
from rushes.domain.keys import JSON
from rushes.engines.models.languages import is_supported, whisper_code
from rushes.engines.port import RATE, DecodingOptions, Engine, Jpeg, Picture, Pictures
from rushes.engines.wire import REVISION, pack, pack_floats, sound, unpack, unpack_pictures

_LONGEST_SOUND = 30 * 60 * RATE  # samples: voice detection is given ten minutes at a time
_LARGEST_SIDE = 8192
_MOST_TEXTS = 5000
_PURPOSES = {"hear": "speech", "read": "text", "depth": "depth", "embed": "sentences"}  # detect: what is said
_OF_PICTURES = ("pictures", "captions")  # what the two nets of a pair are asked for
Said = tuple[dict[str, JSON], Sequence[bytes]]  # a document and its parts
Ask = Callable[[], Said]
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that may be asked: what it is for, and its name with the hash of its weights."""

    capability: str
    name: str


def answer(
    engine: Engine,
    capability: str,
    data: bytes,
    check: Callable[[], None] = lambda: None,
    models: Mapping[str, LoadedModel] | None = None,
) -> bytes:
    """What the engine says to a call, and which model it was; `check` is called before each picture, and may end it.

    `models` are those that may be asked, by all their names; None: any that the engine finds.

    Raises:
        Refused: there is no such call.
        OtherModel: the model or the code round it is here in another version, which would answer otherwise.
        ModelMissing, NotFound: it has no such model.
    """
    call, parts = unpack(data)
    used = _model_of(capability, call, models)
    try:
        ask = _prepared(engine, capability, call, parts, check)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as e:
        raise Refused(f"this is not a call of /v1/{capability}: {type(e).__name__} {e}") from e
    doc, found = ask()
    return pack({**doc, "model": used, "revision": REVISION}, found)


def _model_of(capability: str, call: JSON, models: Mapping[str, LoadedModel] | None) -> str:
    """The model that answers a call, by its full name; empty if none is named."""
    if (wanted := call.get("revision", REVISION)) != REVISION:
        raise OtherModel(
            f"revision {str(wanted)[:20]} of the answers was requested, but this service has revision {REVISION}"
        )
    model, purpose = str(call.get("model", "")), _PURPOSES.get(capability, call.get("what"))
    purpose = "pictures" if capability == "embed" and call.get("what") in _OF_PICTURES else purpose
    if models is None or "model" not in call:
        return model
    if (known := models.get(model)) and known.capability == purpose:
        return known.name
    other = models.get(model.partition("@")[0])
    if other and other.capability == purpose:
        raise OtherModel(f"{model[:200]} was requested, but {other.name} is loaded")
    raise ModelMissing(f"no model {model[:200]!r} for {purpose} is loaded", "See models_loaded of /health.")


def _prepared(engine: Engine, capability: str, call: JSON, parts: Sequence[bytes], check: Callable[[], None]) -> Ask:
    """The call with its arguments checked: what fails after this is the engine's fault."""
    pictures = _Pictures(unpack_pictures(call["shapes"], parts), check) if "shapes" in call else None
    match capability, call.get("what"):
        case "hear", what:
            return _hear(engine, what, call, parts)
        case "read", None:
            given = (str(call["model"]), _all(pictures), _side(call))
            languages = [str(language) for language in call["languages"]]
            use_gpu = call.get("use_gpu") is not False
            return lambda: _seen(engine.read_text(*given, languages, use_gpu=use_gpu))
        case "detect", "objects":
            some = (str(call["model"]), _all(pictures), float(call["least"]))
            return lambda: _seen(engine.detect_objects(*some))
        case "detect", "faces":
            faces = (str(call["model"]), _all(pictures), float(call["least"]), _side(call))
            return lambda: _seen(engine.detect_faces(*faces))
        case "detect", "places":
            places = (str(call["model"]), _all(pictures), _within("most", int(call["most"]), 1, 1000))
            return lambda: _seen(engine.classify_place(*places))
        case "depth", None:
            return _depth(engine, call, _all(pictures))
        case "embed", None:
            return _embed(engine.embed, str(call["model"]), _texts(call))
        case "embed", "captions":
            return _embed(engine.embed_captions, str(call["model"]), _texts(call))
        case "embed", "pictures":
            return _embed(engine.embed_pictures, str(call["model"]), _all(pictures))
    raise NotFound(f"unknown call {capability!r}")


def _hear(engine: Engine, what: str, call: JSON, parts: Sequence[bytes]) -> Ask:
    pcm = sound(parts)
    if len(pcm) > _LONGEST_SOUND:
        raise ValueError("the audio is too long")
    match what:
        case "speech":
            return lambda: ({"spans": [list(span) for span in engine.detect_speech(pcm)]}, ())
        case "language":
            model = str(call["model"])
            names = ("language", "probability")
            return lambda: (dict(zip(names, engine.detect_language(model, pcm), strict=True)), ())
        case "words":
            name, options = str(call["model"]), _decoding(DecodingOptions(**call["options"]))
            return lambda: (asdict(engine.transcribe(name, pcm, options)), ())
    raise ValueError(f"unknown audio task {what!r}")


def _depth(engine: Engine, call: JSON, pictures: Pictures) -> Ask:
    model, inverse = str(call["model"]), None if call["inverse"] is None else bool(call["inverse"])

    def ask() -> Said:
        maps = engine.inverse_depth(model, pictures, inverse=inverse)
        return {"shapes": [list(map.shape) for map in maps]}, [pack_floats(map) for map in maps]

    return ask


def _texts(call: JSON) -> list[str]:
    texts = [str(text) for text in call["texts"]]
    if not 0 < len(texts) <= _MOST_TEXTS:
        raise ValueError(f"give 1 to {_MOST_TEXTS} texts")
    return texts


def _embed(embed: Callable[[str, Any], NDArray[np.float32]], model: str, given: Sequence[object]) -> Ask:
    def ask() -> Said:
        rows = embed(model, given)
        return {"shape": list(rows.shape)}, [pack_floats(rows)]

    return ask


def _seen(found: Sequence[Sequence[Any]]) -> Said:
    return {"pictures": [[one if isinstance(one, tuple) else asdict(one) for one in some] for some in found]}, ()


class _Pictures(list[Picture | Jpeg]):
    """Pictures that are shown to a model as long as somebody waits for the answer."""

    def __init__(self, pictures: Sequence[Picture | Jpeg], check: Callable[[], None]) -> None:
        super().__init__(pictures)
        self._check = check

    def __iter__(self) -> Iterator[Picture | Jpeg]:
        for picture in super().__iter__():
            self._check()
            yield picture


def _all(pictures: _Pictures | None) -> _Pictures:
    if pictures is None:
        raise KeyError("shapes")
    return pictures


def _side(call: JSON) -> int:
    return _within("side", int(call["side"]), 32, _LARGEST_SIDE)


def _decoding(options: DecodingOptions) -> DecodingOptions:
    """Options within bounds: a beam of hundreds takes all memory."""
    language = options.language
    if language is not None and not (is_supported(language) and whisper_code(language) == language):
        raise ValueError("unknown language")
    _within("beam_size", operator.index(options.beam_size), 1, 10)
    _within("no_repeat_ngram_size", operator.index(options.no_repeat_ngram_size), 0, 100)
    _within("temperature", options.temperature, 0, 2)
    _within("repetition_penalty", options.repetition_penalty, 0.1, 10)
    return options


def _within(name: str, value: Number, least: float, most: float) -> Number:
    if not least <= value <= most:
        raise ValueError(f"{name} is out of range")
    return value
