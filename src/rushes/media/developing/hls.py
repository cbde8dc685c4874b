"""HLS playlists (version 7, fragmented MP4 by byte range), as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rushes.media.developing.segment_index import SegmentIndex


@dataclass(frozen=True, slots=True)
class RenditionFile:
    """One file of a rendition: its URI, the hash of its init segment, and its segments."""

    uri: str
    init_sha256: str
    layout: SegmentIndex


@dataclass(frozen=True, slots=True)
class Rendition:
    """The video rendition in a master playlist."""

    width: int
    height: int
    bandwidth: int  # bits per second, with audio
    codec: str


def media_playlist(files: Sequence[RenditionFile]) -> str:
    """All segments of one rendition in order; EXT-X-MAP where the init segment changes."""
    longest = max((s.duration * f.layout.base for f in files for s in f.layout.segments), default=Fraction(1))
    lines = [
        "#EXTM3U",
        "#EXT-X-VERSION:7",
        f"#EXT-X-TARGETDURATION:{_target_duration(longest)}",
        "#EXT-X-MEDIA-SEQUENCE:0",
    ]
    lines += ["#EXT-X-PLAYLIST-TYPE:VOD", "#EXT-X-INDEPENDENT-SEGMENTS"]
    header = ""
    for file in files:
        if file.init_sha256 != header and file.layout.segments:
            lines += ["#EXT-X-DISCONTINUITY"] if header else []
            lines.append(f'#EXT-X-MAP:URI="{file.uri}",BYTERANGE="{file.layout.init}@0"')
            header = file.init_sha256
        lines += _segments(file)
    return "\n".join([*lines, "#EXT-X-ENDLIST", ""])


def _segments(file: RenditionFile) -> list[str]:
    lines = []
    for segment in file.layout.segments:
        lines.append(f"#EXTINF:{_seconds(segment.duration * file.layout.base)},")
        lines.append(f"#EXT-X-BYTERANGE:{segment.length}@{segment.offset}")
        lines.append(file.uri)
    return lines


def master_playlist(picture: Rendition | None, sound_bandwidth: int | None) -> str:
    """The playlist that a player opens: video with an audio rendition, or either alone."""
    lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-INDEPENDENT-SEGMENTS"]
    if picture is None:
        if sound_bandwidth is not None:
            lines += [f'#EXT-X-STREAM-INF:BANDWIDTH={sound_bandwidth},CODECS="mp4a.40.2"', "audio.m3u8"]
        return "\n".join([*lines, ""])
    codecs, sound = picture.codec, ""
    if sound_bandwidth is not None:
        lines.append(
            '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="sound",NAME="sound",DEFAULT=YES,AUTOSELECT=YES,URI="audio.m3u8"'
        )
        codecs, sound = codecs + ",mp4a.40.2", ',AUDIO="sound"'
    size = f"{picture.width}x{picture.height}"
    lines.append(f'#EXT-X-STREAM-INF:BANDWIDTH={picture.bandwidth},RESOLUTION={size},CODECS="{codecs}"{sound}')
    return "\n".join([*lines, "video.m3u8", ""])


def peak_bandwidth(files: Sequence[RenditionFile]) -> int:
    """Bits per second of the largest segment."""
    rates = [
        Fraction(s.length * 8) / (s.duration * f.layout.base) for f in files for s in f.layout.segments if s.duration
    ]
    return int(max(rates, default=Fraction(1))) + 1


def _seconds(duration: Fraction) -> str:
    return f"{float(duration):.6f}"


def _target_duration(duration: Fraction) -> int:
    return max(1, int(duration + Fraction(1, 2)))  # RFC 8216 compares rounded durations
