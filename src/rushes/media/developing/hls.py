"""HLS: where the segments of a fragmented MP4 lie, and playlists (version 7, by byte range) that name them."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from rushes.domain.keys import JSON


@dataclass(frozen=True, slots=True)
class Segment:
    """A byte range that plays by itself, and its place in media time (ticks of the track's time base)."""

    offset: int
    length: int
    start: int
    duration: int


@dataclass(frozen=True, slots=True)
class SegmentIndex:
    """Where things lie in a fragmented file: the header's length, then the segments."""

    init: int
    base: Fraction
    segments: tuple[Segment, ...]

    def init_segment(self, file: Path) -> bytes:
        """What comes before the first segment of that file, and every player reads first."""
        with file.open("rb") as f:
            return f.read(self.init)

    def to_json(self) -> JSON:
        """For the facts of a manifest."""
        rows = [[s.offset, s.length, s.start, s.duration] for s in self.segments]
        return {"init": self.init, "base": [self.base.numerator, self.base.denominator], "segments": rows}

    @staticmethod
    def from_json(doc: JSON) -> "SegmentIndex":
        """The inverse of to_json."""
        return SegmentIndex(doc["init"], Fraction(*doc["base"]), tuple(Segment(*row) for row in doc["segments"]))


@dataclass(frozen=True, slots=True)
class RenditionFile:
    """One file of a rendition: its name beside the playlist, the hash of its header, and where its segments lie."""

    uri: str
    init_sha256: str
    layout: SegmentIndex


@dataclass(frozen=True, slots=True)
class Rendition:
    """What a master playlist says of the picture."""

    width: int
    height: int
    bandwidth: int  # bits per second, of picture and sound
    codec: str


def media_playlist(parts: Sequence[RenditionFile]) -> str:
    """All segments of one rendition in order; a new header is announced where it changes."""
    longest = max((s.duration * p.layout.base for p in parts for s in p.layout.segments), default=Fraction(1))
    target = max(1, int(longest + Fraction(1, 2)))  # the rule of RFC 8216 compares rounded durations
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", f"#EXT-X-TARGETDURATION:{target}", "#EXT-X-MEDIA-SEQUENCE:0"]
    lines += ["#EXT-X-PLAYLIST-TYPE:VOD", "#EXT-X-INDEPENDENT-SEGMENTS"]
    header = ""
    for part in parts:
        if part.init_sha256 != header and part.layout.segments:
            lines += ["#EXT-X-DISCONTINUITY"] if header else []
            lines.append(f'#EXT-X-MAP:URI="{part.uri}",BYTERANGE="{part.layout.init}@0"')
            header = part.init_sha256
        lines += _segments(part)
    return "\n".join([*lines, "#EXT-X-ENDLIST", ""])


def _segments(part: RenditionFile) -> list[str]:
    lines = []
    for segment in part.layout.segments:
        seconds = float(segment.duration * part.layout.base)
        lines += [f"#EXTINF:{seconds:.6f},", f"#EXT-X-BYTERANGE:{segment.length}@{segment.offset}", part.uri]
    return lines


def master_playlist(picture: Rendition | None, sound_bandwidth: int | None) -> str:
    """The list a player opens: picture with sound as a rendition of its own, or either alone."""
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    if picture is None:
        if sound_bandwidth is not None:
            lines += [f'#EXT-X-STREAM-INF:BANDWIDTH={sound_bandwidth},CODECS="mp4a.40.2"', "audio.m3u8"]
        return "\n".join([*lines, ""])
    codecs, sound = picture.codec, ""
    if sound_bandwidth is not None:
        media = 'TYPE=AUDIO,GROUP-ID="sound",NAME="sound",DEFAULT=YES,AUTOSELECT=YES,URI="audio.m3u8"'
        lines.append(f"#EXT-X-MEDIA:{media}")
        codecs, sound = codecs + ",mp4a.40.2", ',AUDIO="sound"'
    size = f"{picture.width}x{picture.height}"
    lines.append(f'#EXT-X-STREAM-INF:BANDWIDTH={picture.bandwidth},RESOLUTION={size},CODECS="{codecs}"{sound}')
    return "\n".join([*lines, "video.m3u8", ""])


def peak_bandwidth(parts: Sequence[RenditionFile]) -> int:
    """Bits per second of the heaviest segment."""
    timed = [(s, p.layout.base) for p in parts for s in p.layout.segments if s.duration]
    return int(max((Fraction(s.length * 8) / (s.duration * base) for s, base in timed), default=1)) + 1
