"""The table: every kind of film by the name of its file, and what is expected of it."""

import os
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av

from tests.media_kinds.films import MS, TS, Kind, Sound, make, steady, uneven

NTSC = Fraction(24000, 1001)
PLAIN = Kind(steady(75), sounds=[Sound()])
SILENT = replace(PLAIN, sounds=[])
IN_TS = Kind(steady(75, 3600), TS, sounds=[Sound()])
IN_MS = Kind(steady(75, 40), MS)
BY_FRAME = Kind(steady(75, 1), Fraction(1, 25))
OVER_THE_WRAP = [*steady(40, 3600, 2**33 - 70 * 90_000), *steady(40, 3600, 2**33 + 90_000)]
OPEN = {"x264-params": "open-gop=1:bframes=3:b-pyramid=normal", "bf": "3"}
PQ = {"color_primaries": 9, "color_trc": 16, "colorspace": 9}


def _remuxed(path: Path, shift: int = 0, kind: str | None = None) -> None:
    """Copy all packets, earlier by so many ticks of the picture: what lies before zero hides behind an edit list."""
    whole = path.with_stem("whole")
    path.rename(whole)
    with av.open(str(whole)) as source, av.open(str(path), "w", format=kind) as out:
        streams = {s.index: out.add_stream_from_template(s) for s in source.streams}
        for packet in source.demux():
            if packet.size and packet.pts is not None and packet.dts is not None:
                by = int(shift * MS / packet.time_base)
                packet.pts, packet.dts = packet.pts - by, packet.dts - by
                packet.stream = streams[packet.stream_index]
                out.mux(packet)


def _with_cover(first: bool) -> Callable[[Path], None]:
    def covered(path: Path) -> None:
        whole, cover = path.with_stem("whole"), path.with_name("cover.mp4")
        path.rename(whole)
        make(cover, Kind([0], codec="mjpeg", pixels="yuvj420p", size=(64, 64)))
        with av.open(str(whole)) as film, av.open(str(cover)) as art, av.open(str(path), "w") as out:
            pictures = art if first else film
            streams = {(pictures, s.index): out.add_stream_from_template(s) for s in pictures.streams}
            other = film if first else art
            streams |= {(other, s.index): out.add_stream_from_template(s) for s in other.streams}
            if not first:
                stream = streams[art, 0]
                stream.disposition = stream.disposition.attached_pic
            for source in (art, film):
                for packet in source.demux():
                    if packet.size:
                        packet.stream = streams[source, packet.stream_index]
                        out.mux(packet)

    return covered


def _glued(second: Kind) -> Callable[[Path], None]:
    def glued(path: Path) -> None:
        more = make(path.with_stem("more"), second)
        path.write_bytes(path.read_bytes() + more.read_bytes())

    return glued


def _without_middle(path: Path) -> None:
    data = path.read_bytes()
    middle = len(data) // 2 // 188 * 188
    path.write_bytes(data[:middle] + data[middle + 6 * 188 :])


def _with_junk(path: Path) -> None:
    """Bytes behind the end that look like the beginning of a box of two gigabytes."""
    path.write_bytes(path.read_bytes() + b"\x7a\xde\x00\x14junk" + bytes(range(256)) * 20)


def _overwritten(path: Path) -> None:
    path.write_text("not a film at all\n" * 99)


KINDS: dict[str, Kind] = {
    "h264.mp4": PLAIN,
    "h264.mov": PLAIN,
    "h264.mkv": replace(IN_MS, sounds=[Sound()]),
    "h264.ts": IN_TS,
    "h264_open_gop.mp4": replace(PLAIN, options=OPEN),
    "h264_open_gop.mkv": replace(IN_MS, options=OPEN),
    "h264_open_gop.ts": replace(IN_TS, options=OPEN),
    "h264_all_key.mp4": replace(PLAIN, gop=1, options={"bf": "0"}),
    "h264_one_key.mp4": replace(SILENT, gop=1000),
    "h264_intra_refresh.mp4": replace(SILENT, options={"intra-refresh": "1", "bf": "0"}),
    "h264_interlaced.mp4": replace(SILENT, options={"flags": "+ildct+ilme", "x264-params": "tff=1"}),
    "h264_444_odd.mp4": replace(SILENT, pixels="yuv444p", size=(95, 63)),
    "h264_10_bit.mkv": replace(IN_MS, pixels="yuv420p10le"),
    "h264_full_range.mp4": replace(SILENT, pixels="yuvj420p"),
    "h264_gray.mp4": replace(SILENT, pixels="gray"),
    "h264_fragmented.mp4": replace(PLAIN, muxing={"movflags": "frag_keyframe+delay_moov"}),
    "hevc.mp4": replace(PLAIN, codec="libx265", size=(128, 72)),
    "hevc_open_gop.mkv": replace(
        IN_MS,
        codec="libx265",
        size=(128, 72),
        options={
            "x265-params": "log-level=none:pools=none:frame-threads=1:bframes=3:open-gop=1:keyint=20:min-keyint=20"
        },
    ),
    "hevc_hdr_10_bit.mp4": replace(SILENT, codec="libx265", size=(128, 72), pixels="yuv420p10le", context=PQ),
    "vp8.webm": replace(IN_MS, codec="libvpx", sounds=[Sound(codec="libopus")]),
    "vp9.webm": replace(IN_MS, codec="libvpx-vp9", sounds=[Sound(codec="libopus")]),
    "av1.mp4": replace(PLAIN, codec="libsvtav1"),
    "av1.webm": replace(IN_MS, codec="libsvtav1", sounds=[Sound(codec="libopus")]),
    "mpeg2_interlaced.ts": replace(
        BY_FRAME, codec="mpeg2video", options={"flags": "+ildct+ilme", "bf": "2"}, gop=12, sounds=[Sound(codec="mp2")]
    ),
    "mpeg2.mpg": replace(
        BY_FRAME, codec="mpeg2video", options={"bf": "2"}, gop=12, sounds=[Sound(codec="mp2")], chunks=1
    ),
    "mpeg4.avi": replace(BY_FRAME, codec="mpeg4", options={"bf": "2"}, sounds=[Sound(codec="mp3")]),
    "mpeg4.mp4": replace(PLAIN, codec="mpeg4", options={"bf": "2"}),
    "mjpeg.avi": replace(BY_FRAME, codec="mjpeg", pixels="yuvj420p", sounds=[Sound(codec="pcm_s16le")]),
    "prores.mov": replace(PLAIN, codec="prores_ks", pixels="yuv422p10le", sounds=[Sound(codec="pcm_s16le")]),
    "ffv1.mkv": replace(IN_MS, codec="ffv1", sounds=[Sound(codec="flac")]),
    "ffv1_rgb.mkv": replace(IN_MS, codec="ffv1", pixels="bgr0"),
    "wmv2.asf": replace(IN_MS, codec="wmv2", sounds=[Sound(codec="mp3")]),
    "vfr.mkv": replace(IN_MS, times=uneven(75)),
    "vfr.mp4": replace(SILENT, times=uneven(75), base=MS),
    "23_976.mp4": replace(PLAIN, times=steady(72, 1001), base=Fraction(1, 24000), rate=NTSC),
    "29_97.mkv": replace(IN_MS, times=[round(n * 1001 / 30) for n in range(90)], rate=Fraction(30000, 1001)),
    "60.mp4": replace(SILENT, times=steady(120, 256), base=Fraction(1, 15360), rate=Fraction(60)),
    "120.mp4": replace(SILENT, times=steady(150, 128), base=Fraction(1, 15360), rate=Fraction(120)),
    "1.mp4": replace(SILENT, times=steady(8, 12800), rate=Fraction(1), gop=3),
    "late_picture.mp4": replace(PLAIN, times=steady(50, 512, 19200)),
    "late_picture.mkv": replace(IN_MS, times=steady(50, 40, 1500), sounds=[Sound()]),
    "late_sound.mp4": replace(PLAIN, sounds=[Sound(Fraction(1), Fraction(2))]),
    "short_sound.mp4": replace(PLAIN, sounds=[Sound(Fraction(1))]),
    "long_sound.mp4": replace(PLAIN, times=steady(40), sounds=[Sound(Fraction(4))]),
    "edit_list.mp4": replace(PLAIN, after=lambda path: _remuxed(path, 320)),
    "negative.ts": replace(IN_TS, times=steady(100, 3600, 2**33 - 180_000), sounds=[]),
    "before_zero.ts": replace(IN_TS, times=steady(75, 3600, 2**33 - 900_000), sounds=[]),
    "wraps.ts": replace(
        IN_TS, times=[*steady(40, 3600, 2**33 - 70 * 90_000), *steady(40, 3600, 2**33 + 90_000)], sounds=[]
    ),
    "junk_behind.mp4": replace(PLAIN, after=_with_junk),
    "rotated_90.mp4": replace(SILENT, rotation=-90),
    "rotated_180.mp4": replace(SILENT, rotation=180),
    "wide_pixels.mp4": replace(SILENT, sar=Fraction(4, 3)),
    "other_size.ts": replace(
        IN_TS,
        sounds=[],
        after=_glued(replace(IN_TS, times=steady(50, 3600, 77 * 3600), sounds=[], size=(128, 96))),
        chunks=1,
    ),
    "two_sounds.mkv": replace(IN_MS, sounds=[Sound(default=False), Sound(codec="flac")]),
    "cover.mp4": replace(PLAIN, after=_with_cover(first=False)),
    "cover_first.mkv": replace(IN_MS, sounds=[Sound()], after=_with_cover(first=True)),
    "one_frame.mp4": replace(SILENT, times=[0]),
    "only_sound.m4a": Kind(sounds=[Sound()]),
    "lost_packets.ts": replace(IN_TS, sounds=[], chunks=1, after=_without_middle),
    "no_times.avi": replace(BY_FRAME, refused="have no timestamps"),
    "raw.h264": replace(SILENT, refused="not on the allow-list|have no timestamps"),
    "back_in_time.ts": replace(
        IN_TS, times=steady(75, 3600, 900_000), sounds=[], after=_glued(replace(IN_TS, sounds=[])), refused="jump back"
    ),
    "cut_off.mp4": replace(
        PLAIN,
        muxing={"movflags": "faststart"},
        after=lambda path: os.truncate(path, path.stat().st_size - 500),
        refused="is truncated",
    ),
    "no_index.mp4": replace(
        PLAIN, after=lambda path: os.truncate(path, path.stat().st_size // 2), refused="truncated|is invalid"
    ),
    "text.mp4": replace(SILENT, after=_overwritten, refused="is a text"),
    "empty.mp4": replace(SILENT, after=lambda path: os.truncate(path, 0), refused="is empty"),
}
