"""A round one-stroke alphabet, drawn at any size; every letter is a few lines and arcs."""

import numpy as np

from film.shapes import Alpha, stroke

# A stroke is a chain of points `x,y` and arcs `@cx,cy,rx,ry,from,to` (degrees, clockwise from the right); `;` lifts the
# pen. y is 0 at the top of a capital, 1 on the line.
GLYPHS = {
    "A": "0,1 .37,0 .74,1; .13,.66 .61,.66",
    "B": "0,1 0,0 @.28,.23,.24,.23,-90,90 0,.46; 0,.46 @.27,.73,.27,.27,-90,90 0,1",
    "C": "@.47,.5,.47,.5,-50,-310",
    "D": "0,0 0,1 @.2,.5,.5,.5,90,-90 0,0",
    "E": ".5,0 0,0 0,1 .5,1; 0,.48 .44,.48",
    "F": ".48,0 0,0 0,1; 0,.48 .42,.48",
    "G": "@.47,.5,.47,.5,-48,-360 .52,.5",
    "H": "0,0 0,1; .66,0 .66,1; 0,.48 .66,.48",
    "I": "0,0 0,1",
    "J": ".36,0 @.18,.8,.18,.2,0,150",
    "K": "0,0 0,1; .56,0 0,.58; .19,.41 .6,1",
    "L": "0,0 0,1 .44,1",
    "M": "0,1 .12,0 .43,.8 .74,0 .86,1",
    "N": "0,1 0,0 .7,1 .7,0",
    "O": "@.49,.5,.49,.5,0,360",
    "P": "0,1 0,0 @.25,.26,.27,.26,-90,90 0,.52",
    "Q": "@.49,.5,.49,.5,0,360; .6,.7 .95,1.04",
    "R": "0,1 0,0 @.25,.26,.27,.26,-90,90 0,.52; .24,.52 .56,1",
    "S": "@.26,.25,.24,.25,-30,-270 @.26,.75,.26,.25,-90,150",
    "T": "0,0 .6,0; .3,0 .3,1",
    "U": "0,0 @.32,.68,.32,.32,180,0 .64,0",
    "V": "0,0 .35,1 .7,0",
    "W": "0,0 .26,1 .52,.1 .78,1 1.04,0",
    "X": "0,0 .62,1; .62,0 0,1",
    "Y": "0,0 .31,.48 .62,0; .31,.48 .31,1",
    "Z": "0,0 .6,0 0,1 .6,1",
    "a": "@.31,.69,.31,.31,0,360; .62,.38 .62,1",
    "b": "0,0 0,1; @.31,.69,.31,.31,0,360",
    "c": "@.31,.69,.31,.31,-50,-310",
    "d": "@.31,.69,.31,.31,0,360; .62,0 .62,1",
    "e": "0,.69 .62,.69 @.31,.69,.31,.31,0,-310",
    "f": "@.29,.2,.15,.2,-50,-180 .14,1; 0,.4 .32,.4",
    "g": "@.31,.69,.31,.31,0,360; .62,.38 @.31,1.05,.31,.27,0,150",
    "h": "0,0 0,1; @.27,.65,.27,.27,180,360 .54,1",
    "i": "0,.38 0,1; 0,.13 0,.15",
    "j": ".1,.38 @-.06,1.12,.16,.18,0,110; .1,.13 .1,.15",
    "k": "0,0 0,1; .42,.38 0,.76; .14,.64 .46,1",
    "l": "0,0 0,1",
    "m": "0,.38 0,1; @.22,.62,.22,.24,180,360 .44,1; @.66,.62,.22,.24,180,360 .88,1",
    "n": "0,.38 0,1; @.27,.65,.27,.27,180,360 .54,1",
    "o": "@.32,.69,.32,.31,0,360",
    "p": "0,.38 0,1.3; @.31,.69,.31,.31,0,360",
    "q": "@.31,.69,.31,.31,0,360; .62,.38 .62,1.3",
    "r": "0,.38 0,1; @.25,.64,.25,.26,180,300",
    "s": "@.2,.535,.16,.155,-30,-270 @.2,.845,.19,.155,-90,150",
    "t": ".14,.1 .14,1; 0,.4 .32,.4",
    "u": "0,.38 @.27,.73,.27,.27,180,0 .54,.38; .54,.38 .54,1",
    "v": "0,.38 .25,1 .5,.38",
    "w": "0,.38 .2,1 .4,.42 .6,1 .8,.38",
    "x": "0,.38 .48,1; .48,.38 0,1",
    "y": "0,.38 .26,1; .5,.38 .14,1.3",
    "z": "0,.38 .46,.38 0,1 .46,1",
    ".": "0,.98 0,1",
    ",": ".06,.96 0,1.14",
    "'": "0,0 0,.2",
    "-": "0,.62 .3,.62",
    ":": "0,.5 0,.52; 0,.96 0,.98",
    ">": "0,.4 .34,.68 0,.96",
}
SPACE, GAP = 0.42, 0.2


def lettering(text: str, size: float, pen: float, spacing: float = GAP) -> Alpha:
    """The text as coverage: capitals `size` pixels high, strokes `pen` pixels wide."""
    margin = pen + 2
    strokes, width = _layout(text, spacing)
    canvas = np.zeros((int(size * 1.35 + 2 * margin), int(width * size + 2 * margin)), np.float32)
    for points in strokes:
        stroke(canvas, np.asarray(points) * size + margin, pen / 2)
    return canvas


def _layout(text: str, spacing: float) -> tuple[list[list[tuple[float, float]]], float]:
    strokes: list[list[tuple[float, float]]] = []
    x = 0.0
    for letter in text:
        if letter == " ":
            x += SPACE
            continue
        glyph = [_points(part) for part in GLYPHS[letter].split(";")]
        left = min(0.0, *(p[0] for part in glyph for p in part))
        strokes += [[(px + x - left, py) for px, py in part] for part in glyph]
        x += max(p[0] for part in glyph for p in part) - left + spacing
    return strokes, x - spacing


def _points(text: str) -> list[tuple[float, float]]:
    points: list[tuple[float, float]] = []
    for item in text.split():
        numbers = [float(n) for n in item.lstrip("@").split(",")]
        points += _arc(*numbers) if item.startswith("@") else [(numbers[0], numbers[1])]
    return points


def _arc(cx: float, cy: float, rx: float, ry: float, start: float, end: float) -> list[tuple[float, float]]:
    angles = np.radians(np.linspace(start, end, max(2, int(abs(end - start) / 8) + 1)))
    return [(float(cx + rx * np.cos(a)), float(cy + ry * np.sin(a))) for a in angles]
