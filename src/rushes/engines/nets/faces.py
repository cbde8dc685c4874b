"""Faces in pictures: YuNet finds them, SFace says by 128 numbers whose they are."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rushes.engines.images import Floats, Points, fitted, resized, sampled
from rushes.engines.nets.nms import Boxes, surest
from rushes.engines.nets.onnx import Onnx
from rushes.engines.port import Face, Picture

_TILE = 640  # the size that the net takes
_SHARED = 200  # pixels that neighbouring tiles share: a smaller face is whole in one of them
_STRIDES = (8, 16, 32)
_OVERLAP = 0.3
_EDGE = 2.0
_SIDE = 112
# Where eyes, nose and the corners of the mouth lie in the pictures that the second net was trained on.
_PLACES = np.array([38.2946 + 51.6963j, 73.5318 + 51.5014j, 56.0252 + 71.7366j, 41.5493 + 92.3655j, 70.7299 + 92.2041j])


class Faces:
    """Finds faces and tells people apart."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._finds, self._knows = Onnx(folder / "yunet.onnx", threads), Onnx(folder / "sface.onnx", threads)

    def find(self, picture: Picture, least: float, side: int) -> list[Face]:
        """Faces with at least that confidence, surest first; small ones in a picture `side` pixels long, by tiles."""
        found = np.concatenate([self._look(*view) for view in _views(picture, side)])
        found = found[found[:, 4] >= least]
        return [self._face(picture, found[n]) for n in surest(found[:, :4], found[:, 4], _OVERLAP)]

    def _look(self, view: Picture, scale: float, corner: Points, inner: Boxes) -> Boxes:
        """Rows of box, score and five points, in pixels of the whole; what an inner edge may have cut is left out."""
        outputs = self._finds.named(view[None, ..., ::-1].transpose(0, 3, 1, 2).astype(np.float32))
        rows = np.concatenate([_rows(outputs, stride) for stride in _STRIDES])
        whole = ((rows[:, :2] > inner[:2] + _EDGE) & (rows[:, 2:4] < inner[2:] - _EDGE)).all(axis=1)
        rows = rows[whole]
        rows[:, [0, 1, 2, 3, *range(5, 15)]] += np.tile(corner, 7)
        rows[:, [0, 1, 2, 3, *range(5, 15)]] /= scale
        return rows

    def _face(self, picture: Picture, row: Boxes) -> Face:
        points = row[5:].reshape(5, 2)
        fc1 = self._knows.run(_aligned(picture, points).transpose(2, 0, 1)[None])[0][0]
        box = np.clip(row[:4], 0, [picture.shape[1], picture.shape[0]] * 2)
        known = fc1 / max(float(np.linalg.norm(fc1)), 1e-9)
        return Face(float(row[4]), tuple(box.tolist()), tuple(map(tuple, points.tolist())), tuple(known.tolist()))


def _views(picture: Picture, side: int) -> Iterator[tuple[Picture, float, Points, Boxes]]:
    """The whole picture and, where it is larger, tiles: pixels, scale, top left corner, edges inside the picture."""
    nowhere = np.array([-np.inf, -np.inf, np.inf, np.inf])
    canvas, scale = fitted(picture, _TILE, _TILE)
    yield canvas, scale, np.zeros(2), nowhere
    larger = min(side, max(picture.shape[:2])) / max(picture.shape[:2])
    if larger <= scale:
        return
    height, width = (round(s * larger) for s in picture.shape[:2])
    large = resized(picture, width, height)
    for top in _starts(height):
        for left in _starts(width):
            tile = large[top : top + _TILE, left : left + _TILE]
            canvas = np.zeros((_TILE, _TILE, 3), np.uint8)
            canvas[: tile.shape[0], : tile.shape[1]] = tile
            ends = (left + _TILE < width, top + _TILE < height)
            inner = np.where([left > 0, top > 0, *ends], [0, 0, _TILE, _TILE], nowhere)
            yield canvas, larger, np.array([left, top], np.float64), inner


def _starts(length: int) -> list[int]:
    count = max(1, -(-(length - _SHARED) // (_TILE - _SHARED)))
    return [round(n * (length - _TILE) / max(1, count - 1)) for n in range(count)] if length > _TILE else [0]


def _rows(outputs: dict[str, Floats], stride: int) -> Boxes:
    cls, obj, box, points = (outputs[f"{name}_{stride}"][0] for name in ("cls", "obj", "bbox", "kps"))
    cells = _TILE // stride
    at = np.stack(np.meshgrid(np.arange(cells), np.arange(cells)), axis=-1).reshape(-1, 2)
    middle, half = (at + box[:, :2]) * stride, np.exp(np.minimum(box[:, 2:], 10)) * stride / 2
    score = np.sqrt(np.clip(cls, 0, 1) * np.clip(obj, 0, 1))
    places = (np.tile(at, 5) + points) * stride
    return np.concatenate([middle - half, middle + half, score, places], axis=1, dtype=np.float64)


def _aligned(picture: Picture, points: Points) -> Floats:
    """The face turned and scaled so that its five points lie where they should, as well as that goes."""
    seen = points[:, 0] + 1j * points[:, 1]
    wanted = _PLACES - _PLACES.mean()
    turn = (wanted.conj() @ (seen - seen.mean())) / (wanted.conj() @ wanted)
    corners = turn * (np.array([0, _SIDE, 1j * _SIDE]) - _PLACES.mean()) + seen.mean()
    return sampled(picture, np.stack([corners.real, corners.imag], axis=1), _SIDE, _SIDE)
