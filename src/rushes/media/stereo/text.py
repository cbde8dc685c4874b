"""Subtitles for both eyes: each line twice, so that it is whole in either view."""

from collections.abc import Sequence

from rushes.media.stereo.view import Look
from rushes.media.subtitles import Cue

_WIDTH, _HEIGHT = 1920, 1080  # of the page on which lines are set; players scale it
_SIZE, _MARGIN = 64, 60
_HEAD = """[Script Info]
ScriptType: v4.00+
PlayResX: {width}
PlayResY: {height}
WrapStyle: 2

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, OutlineColour, BackColour, Bold, BorderStyle, Outline, Shadow, \
ScaleX, ScaleY, Alignment, MarginL, MarginR, MarginV
Style: Eye,Sans,{size},&H00FFFFFF,&H00000000,&H00000000,0,1,3,0,{wide},{high},2,0,0,0

[Events]
Format: Layer, Start, End, Style, Text
"""


def ass(cues: Sequence[Cue], look: Look) -> str:
    """Cues in Advanced SubStation form, placed in the middle below of each view."""
    wide, high = (100 // n if look.squeezed else 100 for n in (look.across, look.down))
    width, height = (side * (1 if look.squeezed else n) for side, n in ((_WIDTH, look.across), (_HEIGHT, look.down)))
    head = _HEAD.format(width=width, height=height, size=_SIZE, wide=wide, high=high)
    return head + "".join(_line(cue, x, y) for cue in cues for x, y in _places(look, width, height))


def _places(look: Look, width: int, height: int) -> list[tuple[int, int]]:
    across, down = width // look.across, height // look.down
    low = down - _MARGIN * down // _HEIGHT
    return [(across * x + across // 2, down * y + low) for y in range(look.down) for x in range(look.across)]


def _line(cue: Cue, x: int, y: int) -> str:
    said = "\\N".join(line.replace("\\", "/").replace("{", "(").replace("}", ")") for line in cue.lines)
    return f"Dialogue: 0,{_time(cue.start)},{_time(cue.end)},Eye,{{\\pos({x},{y})}}{said}\n"


def _time(ms: int) -> str:
    seconds, hundredths = divmod(max(0, ms) // 10, 100)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}.{hundredths:02d}"
