"""The times of one stream, added up packet by packet."""

from dataclasses import dataclass, field
from fractions import Fraction

from av.container import InputContainer
from av.packet import Packet
from av.stream import Stream
from av.video.stream import VideoStream

from rushes.media.timeline import ANEW, Beat

_ENTRIES = 8  # places where jumping into the film is tried


@dataclass(slots=True)
class StreamTimes:
    """What was seen of a stream; hidden packets (edit lists) and those before the first key frame do not count."""

    base: Fraction
    frames: int = 0
    start: int = 0
    blank: int = 0  # packets without a time
    corrupt: int = 0
    jumps_back: int | None = None  # a key frame that is followed by an earlier one
    sizes: dict[int, int] = field(default_factory=dict)  # bytes of the key frames where chunks may begin, by pts
    _last_key: int | None = None
    _beat: Beat = field(init=False)
    _origin: int | None = None  # pts of the first key frame, hidden or not
    _last: int = 0  # latest pts
    _before: int = 0  # the latest but one
    _length: int = 0  # duration of the latest

    def __post_init__(self) -> None:
        self._beat = Beat(ANEW, self.base)

    @property
    def end(self) -> int:
        """Where the latest frame ends; if it does not say how long it lasts, as long as the one before."""
        if not self.frames:
            return self.start
        return self._last + (self._length or self._last - self._before)

    def beginnings(self) -> tuple[int, ...]:
        """Where chunks may begin: the first moment, then the first key frame at or after each multiple of 5 s."""
        return (self.start, *(k for k in self.sizes if k > self.start))

    def add(self, packet: "Packet[Stream]") -> None:
        """Count one packet."""
        self.corrupt += packet.is_corrupt
        if packet.pts is None:
            self.blank += self._origin is not None
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
        if not hidden and self._beat.strikes(pts):
            self.sizes[pts] = size

    def _add_shown(self, pts: int, length: int) -> None:
        self.start = pts if not self.frames else min(self.start, pts)
        self._before = pts if not self.frames else self._before
        self.frames += 1
        if pts >= self._last or self.frames == 1:
            self._before, self._last, self._length = (self._last if self.frames > 1 else pts), pts, length
        elif pts > self._before:
            self._before = pts


def can_be_entered(container: InputContainer, stream: VideoStream, tally: StreamTimes) -> bool:
    """Whether key frames have the same times after a jump as they have in one go; in old formats times are guessed."""
    if container.format.name == "mpeg":  # program streams give a time to some frames only
        return False
    keys = tally.beginnings()[1:]
    few = keys[:: max(1, len(keys) // _ENTRIES)]
    return all(_found(container, stream, tally, key) for key in few)


def _found(container: InputContainer, stream: VideoStream, tally: StreamTimes, key: int) -> bool:
    for back in (0, 1, 2, 4, 8):
        container.seek(key - int(back / tally.base), stream=stream, backward=True)
        for packet in container.demux(stream):
            if packet.pts == key and packet.is_keyframe:
                return packet.size == tally.sizes[key]
            if packet.pts is None or packet.pts > key + 1 / tally.base:
                break
    return False
