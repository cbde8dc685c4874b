"""How values are worded for people: film time, lengths, sizes, ranges, states; used by the templates as filters."""

from collections.abc import Callable, Mapping
from typing import Any

STATES = {
    "created": "waiting",
    "chunking_in_progress": "opening",
    "chunking_complete": "running",
    "completed": "complete",
    "failed": "needs you",
    "cancelled": "cancelled",
}
KINDS = {"speech": "Speech", "text": "Text on screen", "object": "Objects", "face": "Faces", "person": "People",
         "place": "Places", "entity": "Names and links"}  # fmt: skip
LANGUAGES = {"en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "pt": "Portuguese",
             "nl": "Dutch", "ja": "Japanese", "zh": "Chinese", "ru": "Russian", "uk": "Ukrainian", "pl": "Polish",
             "ko": "Korean", "ar": "Arabic", "tr": "Turkish", "sv": "Swedish", "cy": "Welsh"}  # fmt: skip


def timecode(us: int, parts: int = 0) -> str:
    """Film time: 12:41, 1:02:03, with `parts` digits of a second 12:41.7."""
    step = 10 ** (6 - parts)
    whole, rest = divmod(max(0, us) // step, 10**parts)
    hours, minutes, seconds = whole // 3600, whole // 60 % 60, whole % 60
    text = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    return f"{text}.{rest:0{parts}}" if parts else text


def lasting(us: int) -> str:
    """A length: 31 h 12 min, 4 min 03 s, 12 s, 0.4 s."""
    seconds = round(us / 1e6)
    if 0 < us < 950_000:
        return f"{us / 1e6:.1f} s"
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds // 60 % 60:02} min"


def size(count: int | None) -> str:
    """Bytes: 48.3 GB; decimal, as disks are sold."""
    if count is None:
        return "unknown"
    value, unit = float(count), "bytes"
    for bigger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, bigger
    return f"{value:.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.1f} {unit}"


def span(seconds: tuple[float, float] | None) -> str:
    """A range of time to come, 6 to 9 min; never a countdown."""
    if seconds is None:
        return "measuring"
    low, high = seconds
    if high < 90:
        return _range(max(1, round(low)), max(1, round(high)), "s")
    if high < 5400:
        return _range(max(1, round(low / 60)), max(1, round(high / 60)), "min")
    return _range(max(1, round(low / 3600)), max(1, round(high / 3600)), "h")


def plural(count: int, one: str, many: str = "") -> str:
    """1 video, 2 videos."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def state(name: str) -> str:
    """A job's state in people's words."""
    return STATES.get(name, name)


def kind(name: str) -> str:
    """What a line is, in people's words."""
    return KINDS.get(name, name)


def language(code: str) -> str:
    """A language by its name."""
    return LANGUAGES.get(code, code or "unknown")


def nameless(person: str) -> str:
    """Somebody without a name, by the end of the id: people need something to say."""
    return f"Person {person[-4:]}"


def _range(low: int, high: int, unit: str) -> str:
    return f"{low} {unit}" if low == high else f"{low}\u2013{high} {unit}"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "timecode": timecode,
    "lasting": lasting,
    "size": size,
    "span": span,
    "plural": plural,
    "state": state,
    "kind": kind,
    "language": language,
}
