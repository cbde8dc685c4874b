"""Subtitles in a clip, as a track or burnt in, by the ffmpeg of a wheel: PyAV lacks the filter."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from importlib.resources import as_file, files
from pathlib import Path

from imageio_ffmpeg import get_ffmpeg_exe

from rushes.domain.errors import NeverWorks
from rushes.media.encoders import x264_options
from rushes.media.subtitles import Cue, srt

FONT = "SourceSansPro-Semibold.ttf"
_STYLE = "FontName=Source Sans Pro Semibold,FontSize=18,Outline=1.2,Shadow=0.6,MarginV=18"
_LOG_OPTIONS = ("-v", "warning", "-nostdin", "-y")
_MISSING_GLYPH = re.compile(r"fallback with glyph 0x([0-9A-F]+)")
_FILM = ("-protocol_whitelist", "file", "-f", "mp4", "-i")  # options of one input
_CUES = ("-protocol_whitelist", "file", "-f", "srt", "-i", "cues.srt")
# Fonts of the machine would make the bytes depend on it.
_FONTS_CONF = """<?xml version="1.0"?>
<fontconfig><dir prefix="relative">fonts</dir><cachedir prefix="relative">fonts</cachedir></fontconfig>
"""
_BITEXACT = ("-map_metadata", "-1", "-fflags", "+bitexact", "-flags:a", "+bitexact", "-movflags", "+faststart")


def crop_cues(found: Iterable[Cue], start_ms: int, length_ms: int) -> list[Cue]:
    """Cues of a film as cues of a clip with that start and length."""
    moved = ((max(0, c.start - start_ms), min(length_ms, c.end - start_ms), c.lines) for c in found)
    return [Cue(start, end, lines) for start, end, lines in moved if start < end]


def add_track(film: Path, found: Iterable[Cue], language: str, scratch: Path, out: Path) -> None:
    """Copy a clip and add the cues as a subtitle track."""
    (scratch / "cues.srt").write_text(srt(list(found)), "utf-8")
    said = ("-metadata:s:s:0", f"language={language}") if language else ()
    copied = ("-map", "0", "-map", "1", "-c", "copy", "-c:s", "mov_text", *said)
    _ffmpeg(scratch, *_FILM, str(film), *_CUES, *copied, *_BITEXACT, str(out))


def burn_in(film: Path, found: Iterable[Cue], crf: int, scratch: Path, out: Path) -> None:
    """Encode a clip with the cues burnt in; every frame keeps its pts.

    Raises:
        NeverWorks: the font lacks a character of the text.
    """
    (scratch / "cues.srt").write_text(srt(list(found)), "utf-8")
    (scratch / "fonts").mkdir(exist_ok=True)
    with as_file(files(__package__).joinpath("fonts", FONT)) as font:
        shutil.copyfile(font, scratch / "fonts" / FONT)
    (scratch / "fonts.conf").write_text(_FONTS_CONF, "utf-8")
    drawn = f"subtitles=filename=cues.srt:fontsdir=fonts:force_style='{_STYLE}'"
    options = [part for name, value in x264_options(crf).items() for part in (f"-{name}:v", value)]
    times = ("-fps_mode", "passthrough", "-enc_time_base:v", "demux")
    coded = ("-vf", drawn, "-c:v", "libx264", *options, "-c:a", "copy", *times)
    said = _ffmpeg(scratch, *_FILM, str(film), *coded, *_BITEXACT, str(out))
    if lacks := sorted({chr(int(number, 16)) for number in _MISSING_GLYPH.findall(said)}):
        hint = "Add the subtitles as a track instead: players have fonts for every script."
        raise NeverWorks(f"the built-in font lacks {' '.join(lacks[:20])}", hint)


def _ffmpeg(folder: Path, *arguments: str) -> str:
    """Run ffmpeg in the scratch folder, on our files only; returns its warnings. Raises NeverWorks if it fails."""
    command = [get_ffmpeg_exe(), *_LOG_OPTIONS, *arguments]
    told = os.environ | {"FONTCONFIG_FILE": str(folder.absolute() / "fonts.conf")}
    done = subprocess.run(command, cwd=folder, env=told, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NeverWorks(f"ffmpeg could not add the subtitles: {done.stderr.strip()[-300:]}")
    return done.stderr
