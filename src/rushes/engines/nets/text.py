"""PP-OCR in ONNX form: DB text detection, then CTC text recognition; constants carry PaddleOCR's names."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rushes.engines.devices import Compute
from rushes.engines.images import Floats, Points, crop_parallelogram, resize
from rushes.engines.nets.onnx import Onnx
from rushes.engines.port import Picture, TextLine

DET_THRESHOLD = 0.3  # of a pixel
BOX_THRESHOLD = 0.6  # of the mean over a line
UNCLIP_RATIO = 1.6
MIN_SIZE = 3  # pixels of the probability map
_SIDE_MULTIPLE = 32
REC_HEIGHT = 48
_WIDTH_MULTIPLE = 64  # lines are padded to multiples of this and recognised in batches
REC_BATCH = 8
_VERTICAL_RATIO = 1.5  # height / width from which a line is read from top to bottom


@dataclass(frozen=True, slots=True)
class Component:
    """Connected pixels: the corners of their runs, and the mean probability over them."""

    points: Points
    mean: float


def connected_components(probabilities: Floats, mask: NDArray[np.bool_]) -> Iterator[Component]:
    """The 8-connected components of a mask from top to bottom, by run-length union-find."""
    edges = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    ends = np.nonzero(edges == -1)[1]
    sums = np.concatenate([[0.0], np.cumsum(probabilities, dtype=np.float64)])
    flat = rows * mask.shape[1]
    mass = sums[flat + ends] - sums[flat + starts]
    for run in _union_runs(rows, starts, ends, mask.shape[1] + 2):
        x, y = np.concatenate([starts[run], ends[run]]), np.concatenate([rows[run], rows[run]])
        points = np.stack([np.concatenate([x, x]), np.concatenate([y, y + 1])], axis=1).astype(np.float64)
        yield Component(points, float(mass[run].sum() / (ends[run] - starts[run]).sum()))


def _union_runs(
    rows: NDArray[np.intp], starts: NDArray[np.intp], ends: NDArray[np.intp], wide: int
) -> list[NDArray[np.intp]]:
    """Indices of the runs of each component."""
    first = np.searchsorted(rows * wide + ends, (rows + 1) * wide + starts, "left")
    last = np.searchsorted(rows * wide + starts, (rows + 1) * wide + ends, "right")
    root = list(range(len(rows)))

    def find(n: int) -> int:
        while root[n] != n:
            root[n] = root[root[n]]
            n = root[n]
        return n

    for n in np.flatnonzero(last > first):
        for below in range(first[n], last[n]):
            a, b = sorted((find(int(n)), find(below)))
            root[b] = a
    roots = np.array([find(n) for n in range(len(root))], np.intp)
    order = np.argsort(roots, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(roots[order])) + 1) if len(order) else []


def min_area_rectangle(points: Points) -> Points:
    """Corners (top left, top right, bottom right, bottom left), the upper edge within 45 degrees of level."""
    hull = _convex_hull(points)
    edges = np.roll(hull, -1, axis=0) - hull
    angles = np.unique(np.arctan2(edges[:, 1], edges[:, 0]) % (np.pi / 2))
    turns = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    along, down = hull @ turns.T, hull @ np.stack([-turns[:, 1], turns[:, 0]])
    area = np.ptp(along, axis=0) * np.ptp(down, axis=0)
    best = int(np.argmin(np.round(area, 6)))
    across = turns[best] if angles[best] <= np.pi / 4 else np.array([turns[best][1], -turns[best][0]])
    upright = np.array([-across[1], across[0]])
    (a, b), (c, d) = _extent(hull @ across), _extent(hull @ upright)
    return np.array([x * across + y * upright for x, y in ((a, c), (b, c), (b, d), (a, d))])


def _extent(values: NDArray[np.float64]) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _convex_hull(points: Points) -> Points:
    """Andrew's monotone chain."""
    ordered = np.unique(points, axis=0).tolist()
    half: list[list[list[float]]] = []
    for way in (ordered, ordered[::-1]):
        chain: list[list[float]] = []
        for p in way:
            while len(chain) > 1 and _cross(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        half.append(chain[:-1])
    return np.array(half[0] + half[1])


def _cross(a: list[float], b: list[float], c: list[float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


class PpOcr:
    """Detects and recognises lines of text."""

    def __init__(self, folder: Path, compute: Compute) -> None:
        self._detector, self._recogniser = Onnx(folder / "det.onnx", compute), Onnx(folder / "rec.onnx", compute)
        self._alphabet = ["", *self._recogniser.metadata["character"].splitlines(), " "]

    def read(self, picture: Picture, side: int) -> list[TextLine]:
        """The lines of a picture in reading order, detected at `side` pixels on the longer side at most."""
        quads = self._detect(picture, side)
        read = self._recognise([_crop_line(picture, q) for q in quads])
        found = [(q.tolist(), text, sure) for q, (text, sure) in zip(quads, read, strict=True) if text]
        return [TextLine(text, sure, tuple(map(tuple, corners))) for corners, text, sure in found]

    def _detect(self, picture: Picture, side: int) -> list[Points]:
        height, width = picture.shape[:2]
        scale = min(1.0, side / max(height, width))
        w, h = (max(_SIDE_MULTIPLE, _SIDE_MULTIPLE * round(s * scale / _SIDE_MULTIPLE)) for s in (width, height))
        small = resize(picture, w, h)
        probabilities = self._detector.run(_normalise(small[None].astype(np.float32)))[0][0, 0]
        components = connected_components(probabilities, _dilate(probabilities > DET_THRESHOLD))
        quads = [min_area_rectangle(c.points) for c in components if c.mean > BOX_THRESHOLD]
        most = np.array([width, height], np.float64)
        found = [np.clip(_unclip(q) * most / [w, h], 0, most) for q in quads if min(_sides(q)) >= MIN_SIZE]
        return sorted(found, key=lambda q: (q[:, 1].min(), q[:, 0].min()))

    def _recognise(self, strips: Sequence[Floats]) -> list[tuple[str, float]]:
        """Text and confidence of each strip; strips of about one length share a batch."""
        read: list[tuple[str, float]] = [("", 0.0)] * len(strips)
        lengths: dict[int, list[int]] = {}
        for n, strip in enumerate(strips):
            lengths.setdefault(-(-strip.shape[1] // _WIDTH_MULTIPLE) * _WIDTH_MULTIPLE, []).append(n)
        for length, these in sorted(lengths.items()):
            for at in range(0, len(these), REC_BATCH):
                some = these[at : at + REC_BATCH]
                probabilities = self._recogniser.run(_normalise(_pad_widths([strips[n] for n in some], length)))[0]
                for n, one in zip(some, probabilities, strict=True):
                    read[n] = ctc_decode(one, self._alphabet)
        return read


def ctc_decode(probabilities: Floats, alphabet: Sequence[str]) -> tuple[str, float]:
    """Greedy CTC decoding: text and mean confidence."""
    best = probabilities.argmax(axis=1)
    new = (best > 0) & (best != np.concatenate([[0], best[:-1]]))
    text = "".join(alphabet[n] for n in best[new])
    sure = float(probabilities[new, best[new]].mean()) if new.any() else 0.0
    return text.strip(), sure


def _normalise(pictures: Floats) -> Floats:
    """Pictures as the nets take them: BGR planes, -1 to 1; padding (negative) is 0."""
    planes = pictures[..., ::-1].transpose(0, 3, 1, 2)
    return np.ascontiguousarray(np.where(planes < 0, 0, planes / np.float32(127.5) - 1), np.float32)


def _pad_widths(strips: Iterable[Floats], length: int) -> Floats:
    return np.stack([np.pad(s, ((0, 0), (0, length - s.shape[1]), (0, 0)), constant_values=-1) for s in strips])


def _dilate(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    wide = mask | np.pad(mask, ((0, 0), (1, 0)))[:, :-1]
    return wide | np.pad(wide, ((1, 0), (0, 0)))[:-1]


def _sides(quad: Points) -> tuple[float, float]:
    return float(np.hypot(*(quad[1] - quad[0]))), float(np.hypot(*(quad[3] - quad[0])))


def _unclip(quad: Points) -> Points:
    width, height = _sides(quad)
    by = width * height * UNCLIP_RATIO / (2 * (width + height))
    across, down = (quad[1] - quad[0]) / width * by, (quad[3] - quad[0]) / height * by
    moved: Points = quad + np.array([-across - down, across - down, across + down, down - across])
    return moved


def _crop_line(picture: Picture, quad: Points) -> Floats:
    top_left, top_right, bottom_right, bottom_left = quad
    width, height = _sides(quad)
    if height >= _VERTICAL_RATIO * width:
        top_left, top_right, bottom_left = top_right, bottom_right, top_left
        width, height = height, width
    length = max(1, int(np.ceil(REC_HEIGHT * width / max(1.0, height))))
    return crop_parallelogram(picture, np.array([top_left, top_right, bottom_left]), length, REC_HEIGHT)
