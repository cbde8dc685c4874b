"""Speech: which models a profile means."""

from dataclasses import dataclass

from rushes.domain.errors import Refused
from rushes.engines.models.manifest import Model
from rushes.engines.models.store import ModelStore

ENGLISH = "whisper-tiny.en"
EVERY = "whisper-base"
PROFILES = ("fast", "balanced", "high_quality")
_JOIN = "+"


@dataclass(frozen=True, slots=True)
class Ears:
    """The models of one question: one for every language and, if it is another, one for English."""

    every: str
    english: str

    def of(self, language: str) -> str:
        """The model for a window in that language."""
        return self.english if language == "en" else self.every

    def other(self, language: str) -> str | None:
        """A second opinion, if the question names one that can hear that language."""
        second = self.every if self.of(language) == self.english else self.english
        return second if second != self.of(language) and (language == "en" or second == self.every) else None


def speech_model(profile: str, store: ModelStore, path: str = "") -> str:
    """What stands in a result's question for a profile: model names with their hashes, joined by a plus.

    Raises:
        Refused: there is no such profile.
        ModelMissing: the configured path holds no model.
    """
    if profile not in PROFILES:
        raise Refused(f"unknown profile {profile!r}", f"Choose from: {', '.join(PROFILES)}")
    if path:
        return store.name_of(store.find(path))
    ids = (ENGLISH, EVERY) if profile == "fast" else (EVERY,)
    return _JOIN.join(store.known[id].name for id in ids)


def speech_models(profile: str, store: ModelStore, path: str = "") -> tuple[Model, ...]:
    """The models of the manifest that a profile needs on this machine."""
    ids = [name.partition("@")[0] for name in speech_model(profile, store, path).split(_JOIN)]
    return tuple(store.known[id] for id in ids if id in store.known and not path)


def ears(question: str) -> Ears:
    """The inverse of speech_model."""
    names = question.split(_JOIN)
    return Ears(every=names[-1], english=names[0])
