"""Videos: the footage we were given, and what probe found out about it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from rushes.domain.keys import JSON
from rushes.domain.span import Span

BUCKETS = ("s3://", "gs://", "az://")  # Amazon and its like, Google Cloud Storage, Azure Blob Storage


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The cheap identity of an original: enough to notice a change without reading it.

    `path` is relative to the folder of the home where it lies below it, else absolute; in a bucket it is
    s3://bucket/key (or gs://, az://), the time is that of the last change, and the ETag stands for the inode.
    """

    path: str
    size: int
    mtime_ns: int
    inode: int = 0
    etag: str = ""  # unknown in a bucket: the job is there before its file
    site: str = ""  # the machines that see it under this path; "" if all workers do

    @property
    def far(self) -> bool:
        """Whether it lies in a bucket."""
        return self.path.startswith(BUCKETS)

    @staticmethod
    def from_json(doc: JSON) -> "Fingerprint":
        """The inverse of dataclasses.asdict."""
        return Fingerprint(**doc)


class RemoteFile(Protocol):
    """A file that lies elsewhere: read through a reader or a descriptor that we are given, never by URL."""

    @property
    def name(self) -> str:
        """What people call it."""

    def open(self) -> BinaryIO:
        """A seekable reader of all of it, from its beginning."""


class RemoteOriginal(RemoteFile, Protocol):
    """An original that lies elsewhere."""

    @property
    def taken_in(self) -> Fingerprint:
        """The version that is read."""


@runtime_checkable
class BlockOriginal(RemoteOriginal, Protocol):
    """An original that is fetched block by block."""

    @property
    def block_size(self) -> int:
        """Bytes of each block but the last."""

    def block(self, number: int) -> Path:
        """A local file with the bytes of one block, there for a minute at least."""


Footage = Path | RemoteFile  # where the bytes of a film are


@dataclass(frozen=True, slots=True)
class VideoTrack:
    """The picture: sizes as coded, and what must be carried to show them right."""

    index: int
    codec: str
    width: int
    height: int
    base: Fraction
    start: int  # first pts shown, in ticks of base
    end: int  # end of the last frame
    frames: int  # packets counted, not the header's word
    keys: tuple[int, ...]  # where chunks may begin: the first key frame at or after each multiple of 5 s
    rate: Fraction | None  # nominal, for people; never used for time
    rotation: int = 0
    sar: Fraction = Fraction(1)
    interlaced: bool = False
    seekable: bool = True  # false: damaged, or its times are lost by a jump, so it is one chunk
    damaged: bool = False  # parts are missing: errors of the decoder are expected and hidden as well as it can

    @property
    def upright(self) -> tuple[int, int]:
        """Width and height as people see it."""
        return (self.height, self.width) if self.rotation % 180 == 90 else (self.width, self.height)

    @property
    def span(self) -> Span:
        """The whole of it."""
        return Span(self.start, self.end, self.base)


@dataclass(frozen=True, slots=True)
class AudioTrack:
    """One track of sound."""

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
    """What probe found: identity, container and tracks. Either track may be missing, never both."""

    sha256: str
    size: int
    container: str
    video: VideoTrack | None
    audio: tuple[AudioTrack, ...] = ()
    title: str = ""
    shot_at: str = ""  # creation time as the container says, ISO 8601

    @property
    def tracks(self) -> tuple[VideoTrack | AudioTrack, ...]:
        """Picture and sound."""
        return (self.video, *self.audio) if self.video else self.audio

    @property
    def sound(self) -> AudioTrack | None:
        """The track to listen to: the default one, else the first."""
        return next((t for t in self.audio if t.default), self.audio[0] if self.audio else None)

    @property
    def start(self) -> Fraction:
        """The first moment that is shown or heard, in seconds of media time: what people see as zero."""
        return min(t.start * t.base for t in self.tracks)

    @property
    def duration(self) -> Fraction:
        """Seconds from the first to the last moment that is shown or heard."""
        return max(t.end * t.base for t in self.tracks) - self.start

    def to_json(self) -> JSON:
        """For the probe artifact; fractions as [over, under]."""
        return _plain(asdict(self))

    @staticmethod
    def from_json(doc: Mapping[str, JSON]) -> "VideoFacts":
        """The inverse of to_json."""
        video = VideoTrack(**_tracked(doc["video"])) if doc["video"] else None
        audio = tuple(AudioTrack(**_tracked(track)) for track in doc["audio"])
        return VideoFacts(**{**doc, "video": video, "audio": audio})


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


def _tracked(doc: Mapping[str, JSON]) -> dict[str, JSON]:
    """The fields of a track: its pairs are fractions, its key frames a tuple."""
    lists = {name: value for name, value in doc.items() if isinstance(value, list)}
    return {**doc, **{name: tuple(v) if name == "keys" else Fraction(*v) for name, v in lists.items()}}
