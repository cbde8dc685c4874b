"""Videos: originals, and what probe found in them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO, Protocol

from rushes.domain.keys import JSON
from rushes.domain.span import Span


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The cheap identity of an original: enough to notice a change without reading it.

    `path` is relative to the folder of the home if it is below it, else absolute. In a bucket it is s3://bucket/key,
    `mtime_ns` is LastModified, and the ETag replaces the inode.
    """

    path: str
    size: int
    mtime_ns: int
    inode: int = 0
    etag: str = ""  # empty in a bucket: the job was submitted before its upload

    @property
    def far(self) -> bool:
        """Whether it is in a bucket."""
        return self.path.startswith("s3://")

    @staticmethod
    def from_json(doc: JSON) -> "Fingerprint":
        """The inverse of dataclasses.asdict."""
        where, size, changed = doc["path"], int(doc["size"]), int(doc["mtime_ns"])
        return Fingerprint(where, size, changed, int(doc.get("inode", 0)), doc.get("etag", ""))


class RemoteOriginal(Protocol):
    """An original in a bucket, read through a ranged reader, never by URL."""

    @property
    def name(self) -> str:
        """Its name for people."""

    @property
    def taken_in(self) -> Fingerprint:
        """The version that is read."""

    def open(self) -> BinaryIO:
        """A seekable reader."""


Footage = Path | RemoteOriginal  # where the bytes of an original are


@dataclass(frozen=True, slots=True)
class VideoTrack:
    """The video track: coded size, and what is needed to show it right."""

    index: int
    codec: str
    width: int
    height: int
    base: Fraction
    start: int  # first pts shown, in ticks of base
    end: int  # end of the last frame
    frames: int  # by packets, not by the header
    keys: tuple[int, ...]  # where chunks may begin: the first key frame at or after each multiple of 5 s
    rate: Fraction | None  # nominal, for display; never used for time
    rotation: int = 0
    sar: Fraction = Fraction(1)
    interlaced: bool = False
    seekable: bool = True  # false: damaged, or seeking loses its times, so it is one chunk
    damaged: bool = False  # parts are missing: errors of the decoder are expected and concealed

    @property
    def upright(self) -> tuple[int, int]:
        """Width and height after rotation."""
        return (self.height, self.width) if self.rotation % 180 == 90 else (self.width, self.height)

    @property
    def span(self) -> Span:
        """Its whole span."""
        return Span(self.start, self.end, self.base)


@dataclass(frozen=True, slots=True)
class AudioTrack:
    """One audio track."""

    index: int
    codec: str
    rate: int
    channels: int
    base: Fraction
    start: int
    end: int
    language: str = ""
    default: bool = False


@dataclass(frozen=True, slots=True)
class VideoFacts:
    """What probe found: hash, container and tracks. Video or audio may be missing, never both."""

    sha256: str
    size: int
    container: str
    video: VideoTrack | None
    audio: tuple[AudioTrack, ...] = ()
    title: str = ""
    shot_at: str = ""  # creation time as the container says, ISO 8601

    @property
    def tracks(self) -> tuple[VideoTrack | AudioTrack, ...]:
        """Video and audio tracks."""
        return (self.video, *self.audio) if self.video else self.audio

    @property
    def sound(self) -> AudioTrack | None:
        """The audio track to use: the default one, else the first."""
        return next((t for t in self.audio if t.default), self.audio[0] if self.audio else None)

    @property
    def start(self) -> Fraction:
        """The first time of any track, in seconds of media time: film time zero."""
        return min(t.start * t.base for t in self.tracks)

    @property
    def duration(self) -> Fraction:
        """Seconds from the first to the last time of any track."""
        return max(t.end * t.base for t in self.tracks) - self.start

    def to_json(self) -> JSON:
        """For the probe artifact; fractions as [numerator, denominator]."""
        return _plain(asdict(self))

    @staticmethod
    def from_json(doc: Mapping[str, JSON]) -> "VideoFacts":
        """The inverse of to_json."""
        video = VideoTrack(**_track(doc["video"])) if doc["video"] else None
        return VideoFacts(**{**doc, "video": video, "audio": tuple(AudioTrack(**_track(a)) for a in doc["audio"])})


def _plain(value: JSON) -> JSON:
    match value:
        case Fraction():
            return [value.numerator, value.denominator]
        case dict():
            return {k: _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
        case _:
            return value


def _track(doc: Mapping[str, JSON]) -> dict[str, JSON]:
    pairs = {"base", "sar", "rate"}  # the rate of audio is a number
    out = {k: Fraction(*v) if k in pairs and isinstance(v, list) else v for k, v in doc.items()}
    return out | ({"keys": tuple(doc["keys"])} if "keys" in doc else {})
