"""Start, end and key frames of a stream, from its packets."""

from dataclasses import dataclass, field
from fractions import Fraction

from av.container import InputContainer
from av.packet import Packet
from av.stream import Stream
from av.video.stream import VideoStream

from rushes.media.timeline import RESTART_PERIOD, PeriodicSampler

_SEEK_TESTS = 8  # key frames to which seeking is tested


@dataclass(slots=True)
class StreamTimes:
    """What the packets of a stream tell; those hidden by edit lists or before the first key frame do not count."""

    base: Fraction
    frames: int = 0
    start: int = 0
    untimed: int = 0  # packets without a pts
    corrupt: int = 0
    jumps_back: int | None = None  # pts of a key frame that an earlier one follows
    sizes: dict[int, int] = field(default_factory=dict)  # of the key frames where chunks may begin, in bytes, by pts
    _last_key: int | None = None
    _sampler: PeriodicSampler = field(init=False)
    _origin: int | None = None  # pts of the first key frame, even if hidden
    _last: int = 0  # latest pts
    _before: int = 0  # the latest but one
    _length: int = 0  # duration of the latest

    def __post_init__(self) -> None:
        self._sampler = PeriodicSampler(RESTART_PERIOD, self.base)

    @property
    def end(self) -> int:
        """The end of the last frame; without a duration it lasts as long as the one before."""
        if not self.frames:
            return self.start
        return self._last + (self._length or self._last - self._before)

    def chunk_starts(self) -> tuple[int, ...]:
        """Where chunks may begin: the start, then the first key frame at or after each multiple of 5 s."""
        return (self.start, *(k for k in self.sizes if k > self.start))

    def add(self, packet: "Packet[Stream]") -> None:
        """Count one packet."""
        self.corrupt += packet.is_corrupt
        if packet.pts is None:
            self.untimed += self._origin is not None
            return
        if packet.is_keyframe:
            self._add_key(packet.pts, packet.size, packet.is_discard)
        if self._origin is None or packet.pts < self._origin or packet.is_discard:
            return
        self._add_shown(packet.pts, packet.duration or 0)

    def _add_key(self, pts: int, size: int, hidden: bool) -> None:
        if self._origin is None:
            self._origin = pts
        if self._last_key is not None and pts <= self._last_key and self.jumps_back is None:
            self.jumps_back = self._last_key
        self._last_key = pts
        if not hidden and self._sampler.is_due(pts):
            self.sizes[pts] = size

    def _add_shown(self, pts: int, length: int) -> None:
        self.start = pts if not self.frames else min(self.start, pts)
        self._before = pts if not self.frames else self._before
        self.frames += 1
        if pts >= self._last or self.frames == 1:
            self._before, self._last, self._length = (self._last if self.frames > 1 else pts), pts, length
        elif pts > self._before:
            self._before = pts


def is_seekable(container: InputContainer, stream: VideoStream, times: StreamTimes) -> bool:
    """Whether key frames have the same pts after a seek as in one pass; in old formats FFmpeg guesses them."""
    if container.format.name == "mpeg":  # program streams give a pts to some frames only
        return False
    keys = times.chunk_starts()[1:]
    few = keys[:: max(1, len(keys) // _SEEK_TESTS)]
    return all(_seeks_to(container, stream, times, key) for key in few)


def _seeks_to(container: InputContainer, stream: VideoStream, times: StreamTimes, key: int) -> bool:
    for back in (0, 1, 2, 4, 8):
        container.seek(key - int(back / times.base), stream=stream, backward=True)
        for packet in container.demux(stream):
            if packet.pts == key and packet.is_keyframe:
                return packet.size == times.sizes[key]
            if packet.pts is None or packet.pts > key + 1 / times.base:
                break
    return False
