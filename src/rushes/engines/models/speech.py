"""Speech: the models of each profile."""

from dataclasses import dataclass

from rushes.domain.errors import ModelMissing, Refused
from rushes.engines.models import fetch
from rushes.engines.models.manifest import Model
from rushes.engines.models.store import ModelStore

ENGLISH = "whisper-tiny.en"
MULTILINGUAL = "whisper-base"
PROFILES = ("fast", "balanced", "high_quality")
_JOIN = "+"
_SHIPPED = {"tiny": "fast", "base": "balanced"}  # sizes of Whisper -> the profile that has them
_ON_THE_HUB = {
    **{size: f"Systran/faster-whisper-{size}" for size in ("small", "medium", "large-v1", "large-v2", "large-v3")},
    "large": "Systran/faster-whisper-large-v3",
}
USUAL_SIZE = "large-v3"  # what programs ask for unasked: without it on this machine, the profile's model answers


@dataclass(frozen=True, slots=True)
class SpeechModels:
    """The multilingual model and, if it is another, the one for English."""

    multilingual: str
    english: str

    def of(self, language: str) -> str:
        """The model for that language."""
        return self.english if language == "en" else self.multilingual

    def other(self, language: str) -> str | None:
        """The other model, if there is one that supports that language."""
        second = self.multilingual if self.of(language) == self.english else self.english
        return second if second != self.of(language) and (language == "en" or second == self.multilingual) else None


def speech_model(profile: str, store: ModelStore, path: str = "") -> str:
    """The models of a profile, as result keys use them: names with hashes, joined by a plus.

    Raises:
        Refused: unknown profile.
        ModelMissing: the configured path holds no model.
    """
    if profile not in PROFILES:
        raise Refused(f"unknown profile {profile!r}", f"Choose from: {', '.join(PROFILES)}")
    if path:
        return store.name_of(store.find(path))
    ids = (ENGLISH, MULTILINGUAL) if profile == "fast" else (MULTILINGUAL,)
    return _JOIN.join(store.known[id].name for id in ids)


def speech_model_of_size(size: str, store: ModelStore) -> str:
    """The models of a size of Whisper or a name on the hub, named as `speech_model` does; "" if the profile decides.

    Raises:
        Refused: it is unknown, or not on this machine.
    """
    if size in _SHIPPED:
        return speech_model(_SHIPPED[size], store)
    id = _ON_THE_HUB.get(size, size)
    if id and not fetch.is_hub_id(id):
        raise Refused(f"unknown model {size[:60]!r}", f"Choose from: {', '.join((*_SHIPPED, *_ON_THE_HUB))}")
    try:
        return store.name_of(store.find(id)) if id else ""
    except ModelMissing as e:
        if size == USUAL_SIZE:
            return ""
        hint = f"Run: rushes models pull {id}. Or choose {' or '.join(_SHIPPED)}."
        raise Refused(f"the model {size} is not on this machine", hint) from e


def speech_models(profile: str, store: ModelStore, path: str = "") -> tuple[Model, ...]:
    """The models of the manifest that a profile needs on this machine."""
    ids = [name.partition("@")[0] for name in speech_model(profile, store, path).split(_JOIN)]
    return tuple(store.known[id] for id in ids if id in store.known and not path)


def parse_speech_models(name: str) -> SpeechModels:
    """The inverse of speech_model."""
    names = name.split(_JOIN)
    return SpeechModels(multilingual=names[-1], english=names[0])
