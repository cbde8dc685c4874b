"""Speech: the models of each profile."""

from dataclasses import dataclass

from rushes.domain.errors import Refused
from rushes.engines.models.manifest import Model
from rushes.engines.models.store import ModelStore

ENGLISH = "whisper-tiny.en"
MULTILINGUAL = "whisper-base"
PROFILES = ("fast", "balanced", "high_quality")
_JOIN = "+"
_SIZES = {"tiny": "fast", "base": "balanced"}  # names of Whisper's sizes that are shipped -> the profile that has them


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
    """The models of a size of Whisper, named as `speech_model` does; empty if it is not shipped."""
    return speech_model(_SIZES[size], store) if size in _SIZES else ""


def speech_models(profile: str, store: ModelStore, path: str = "") -> tuple[Model, ...]:
    """The models of the manifest that a profile needs on this machine."""
    ids = [name.partition("@")[0] for name in speech_model(profile, store, path).split(_JOIN)]
    return tuple(store.known[id] for id in ids if id in store.known and not path)


def parse_speech_models(name: str) -> SpeechModels:
    """The inverse of speech_model."""
    names = name.split(_JOIN)
    return SpeechModels(multilingual=names[-1], english=names[0])
