"""Text in pictures: one net finds lines, another reads them (PP-OCR in ONNX form)."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rushes.engines.images import Floats, Points, resized, sampled
from rushes.engines.nets.connected_components import blobs, smallest_rectangle
from rushes.engines.nets.onnx import Onnx
from rushes.engines.port import Line, Picture

_INK = 0.3  # from here on a pixel may be text
_SURE = 0.6  # the mean over a line
_GROW = 1.6  # the net was trained on shrunken lines
_LEAST = 3  # pixels of the map
_STEP = 32  # sides must be multiples
_HIGH = 48  # the height that the reading net was trained on
_WIDTHS = 64  # lines are filled up to multiples of this and read together
_BATCH = 8
_UPRIGHT = 1.5  # higher than wide by this: read from top to bottom


class Reader:
    """Finds and reads lines."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._finds, self._reads = Onnx(folder / "det.onnx", threads), Onnx(folder / "rec.onnx", threads)
        self._letters = ["", *self._reads.notes["character"].splitlines(), " "]

    def read(self, picture: Picture, side: int) -> list[Line]:
        """The lines of a picture, looked for in one whose longer side is `side` at most, in reading order."""
        quads = self._find(picture, side)
        strips = [_strip(picture, q) for q in quads]
        read = self._texts(strips)
        return [
            Line(text, sure, tuple(map(tuple, q.tolist()))) for q, (text, sure) in zip(quads, read, strict=True) if text
        ]

    def _find(self, picture: Picture, side: int) -> list[Points]:
        height, width = picture.shape[:2]
        scale = min(1.0, side / max(height, width))
        w, h = (max(_STEP, _STEP * round(s * scale / _STEP)) for s in (width, height))
        small = resized(picture, w, h)
        chances = self._finds.run(_input(small[None].astype(np.float32)))[0][0, 0]
        found = [
            _grown(r)
            for b in blobs(chances, _thick(chances > _INK))
            if b.mean > _SURE and _wide(r := smallest_rectangle(b.points))
        ]
        most = np.array([width, height], np.float64)
        return sorted(
            (np.clip(q * most / [w, h], 0, most) for q in found), key=lambda q: (q[:, 1].min(), q[:, 0].min())
        )

    def _texts(self, strips: Sequence[Floats]) -> list[tuple[str, float]]:
        """What strips say; strips of about one length go together."""
        read: list[tuple[str, float]] = [("", 0.0)] * len(strips)
        lengths: dict[int, list[int]] = {}
        for n, strip in enumerate(strips):
            lengths.setdefault(-(-strip.shape[1] // _WIDTHS) * _WIDTHS, []).append(n)
        for length, these in sorted(lengths.items()):
            for at in range(0, len(these), _BATCH):
                some = these[at : at + _BATCH]
                chances = self._reads.run(_input(_filled([strips[n] for n in some], length)))[0]
                for n, one in zip(some, chances, strict=True):
                    read[n] = self._spelt(one)
        return read

    def _spelt(self, chances: Floats) -> tuple[str, float]:
        """The likeliest letters: repeats are one, blanks part them."""
        best = chances.argmax(axis=1)
        new = (best > 0) & (best != np.concatenate([[0], best[:-1]]))
        text = "".join(self._letters[n] for n in best[new])
        sure = float(chances[new, best[new]].mean()) if new.any() else 0.0
        return text.strip(), sure


def _input(pictures: Floats) -> Floats:
    """Pictures as the nets want them: BGR planes, -1 to 1; what is filled up (negative) is 0."""
    planes = pictures[..., ::-1].transpose(0, 3, 1, 2)
    return np.ascontiguousarray(np.where(planes < 0, 0, planes / np.float32(127.5) - 1), np.float32)


def _filled(strips: Iterable[Floats], length: int) -> Floats:
    return np.stack([np.pad(s, ((0, 0), (0, length - s.shape[1]), (0, 0)), constant_values=-1) for s in strips])


def _thick(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    wide = mask | np.pad(mask, ((0, 0), (1, 0)))[:, :-1]
    return wide | np.pad(wide, ((1, 0), (0, 0)))[:-1]


def _sides(quad: Points) -> tuple[float, float]:
    return float(np.hypot(*(quad[1] - quad[0]))), float(np.hypot(*(quad[3] - quad[0])))


def _wide(quad: Points) -> bool:
    return min(_sides(quad)) >= _LEAST


def _grown(quad: Points) -> Points:
    width, height = _sides(quad)
    by = width * height * _GROW / (2 * (width + height))
    across, down = (quad[1] - quad[0]) / width * by, (quad[3] - quad[0]) / height * by
    moved: Points = quad + np.array([-across - down, across - down, across + down, down - across])
    return moved


def _strip(picture: Picture, quad: Points) -> Floats:
    top_left, top_right, bottom_right, bottom_left = quad
    width, height = _sides(quad)
    if height >= _UPRIGHT * width:
        top_left, top_right, bottom_left = top_right, bottom_right, top_left
        width, height = height, width
    length = max(1, int(np.ceil(_HIGH * width / max(1.0, height))))
    return sampled(picture, np.array([top_left, top_right, bottom_left]), length, _HIGH)
