"""A line plot as SVG text: a few named lines over the same places, from zero up, each labelled at its end."""

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 48, 44
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#7a5195")  # told apart by colour-blind eyes too
GAP = 16  # between labels


def plot(title: str, across: str, places: Sequence[float], lines: Mapping[str, Sequence[float]]) -> str:
    """The picture; `title` says what goes up, `across` what goes to the right."""
    ticks = ticks_up_to(max(max(values) for values in lines.values()))
    x = [LEFT + (WIDTH - LEFT - RIGHT) * place / max(places) for place in places]

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / ticks[-1]

    ends = apart([y(values[-1]) for values in lines.values()])
    parts = [_text(16, 26, title, "start", "#222", 15)]
    parts += [_rule(y(tick)) + _text(LEFT - 8, y(tick) + 4, short(tick), "end") for tick in ticks]
    parts += [_text(at, HEIGHT - BOTTOM + 18, short(place)) for at, place in zip(x, places, strict=True)]
    parts += [_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, across)]
    for (name, values), end, colour in zip(lines.items(), ends, COLOURS, strict=False):
        points = [(at, y(value)) for at, value in zip(x, values, strict=True)]
        parts += [_line(points, colour), _text(x[-1] + 10, end + 4, name, "start", colour)]
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="system-ui, sans-serif">'
    back = f'<title>{escape(title)}</title>\n<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#fff"/>'
    return "\n".join([head, back, *parts, "</svg>\n"])


def ticks_up_to(most: float) -> list[float]:
    """Round numbers from zero to just above the most, three to six of them."""
    step = 10 ** math.floor(math.log10(most or 1.0))
    step = next(step * part for part in (0.2, 0.25, 0.5, 1.0, 2.0) if math.ceil(most / (step * part)) <= 5)
    return [step * n for n in range(math.ceil(most / step) + 1)]


def short(number: float) -> str:
    """As people write it on an axis."""
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def apart(heights: Sequence[float]) -> list[float]:
    """The same heights, moved down where two labels would touch."""
    moved, last = list(heights), -math.inf
    for n in sorted(range(len(heights)), key=heights.__getitem__):
        last = moved[n] = max(heights[n], last + GAP)
    return moved


def _line(points: Sequence[tuple[float, float]], colour: str) -> str:
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in points)
    return f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2.5"/>{dots}'


def _rule(y: float) -> str:
    return f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e3e3e3"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle", colour: str = "#555", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">{escape(text)}</text>'
    )
