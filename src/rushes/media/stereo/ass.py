"""Subtitles of packed 3D films as ASS: each line once per view."""

from collections.abc import Sequence

from rushes.media.stereo.frame_packing import Packing
from rushes.media.subtitles import Cue

_WIDTH, _HEIGHT = 1920, 1080  # of the canvas, which players scale
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


def ass(cues: Sequence[Cue], packing: Packing) -> str:
    """Cues in Advanced SubStation Alpha form, at the bottom centre of each view."""
    wide, high = (100 // n if packing.squeezed else 100 for n in (packing.across, packing.down))
    full = ((_WIDTH, packing.across), (_HEIGHT, packing.down))
    width, height = (side * (1 if packing.squeezed else n) for side, n in full)
    head = _HEAD.format(width=width, height=height, size=_SIZE, wide=wide, high=high)
    return head + "".join(_dialogue(cue, x, y) for cue in cues for x, y in _positions(packing, width, height))


def _positions(packing: Packing, width: int, height: int) -> list[tuple[int, int]]:
    across, down = width // packing.across, height // packing.down
    low = down - _MARGIN * down // _HEIGHT
    return [(across * x + across // 2, down * y + low) for y in range(packing.down) for x in range(packing.across)]


def _dialogue(cue: Cue, x: int, y: int) -> str:
    text = "\\N".join(line.replace("\\", "/").replace("{", "(").replace("}", ")") for line in cue.lines)
    return f"Dialogue: 0,{_time(cue.start)},{_time(cue.end)},Eye,{{\\pos({x},{y})}}{text}\n"


def _time(ms: int) -> str:
    seconds, hundredths = divmod(max(0, ms) // 10, 100)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}.{hundredths:02d}"
