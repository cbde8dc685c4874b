"""Faces in pictures: YuNet detects them, SFace embeds each in 128 dimensions."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rushes.engines.devices import Compute
from rushes.engines.images import Boxes, Floats, Points, crop_parallelogram, letterbox, nms, resize
from rushes.engines.nets.onnx import Onnx
from rushes.engines.port import Face, Picture

INPUT_SIDE = 640
_TILE_OVERLAP = 200  # pixels: a smaller face is whole in one of two neighbours
STRIDES = (8, 16, 32)
NMS_THRESHOLD = 0.3
_EDGE = 2.0
ALIGNED_SIDE = 112
# Eyes, nose and corners of the mouth in the aligned picture, as complex numbers.
ARCFACE_LANDMARKS = np.array(
    [38.2946 + 51.6963j, 73.5318 + 51.5014j, 56.0252 + 71.7366j, 41.5493 + 92.3655j, 70.7299 + 92.2041j]
)


class Faces:
    """Detects faces and embeds them."""

    def __init__(self, folder: Path, compute: Compute) -> None:
        self._detector, self._embedder = Onnx(folder / "yunet.onnx", compute), Onnx(folder / "sface.onnx", compute)

    def find(self, picture: Picture, least: float, side: int) -> list[Face]:
        """Faces with at least that confidence, best first; small ones by tiles of the picture at `side` pixels."""
        found = np.concatenate([self._detect(*tile) for tile in _tiles(picture, side)])
        found = found[found[:, 4] >= least]
        return [self._face(picture, found[n]) for n in nms(found[:, :4], found[:, 4], NMS_THRESHOLD)]

    def _detect(self, tile: Picture, scale: float, corner: Points, inner: Boxes) -> Boxes:
        """Rows of box, score and five landmarks, in pixels of the whole; drops what an inner edge may have cut."""
        outputs = self._detector.named(tile[None, ..., ::-1].transpose(0, 3, 1, 2).astype(np.float32))
        rows = np.concatenate([_decode(outputs, stride) for stride in STRIDES])
        whole = ((rows[:, :2] > inner[:2] + _EDGE) & (rows[:, 2:4] < inner[2:] - _EDGE)).all(axis=1)
        rows = rows[whole]
        rows[:, [0, 1, 2, 3, *range(5, 15)]] += np.tile(corner, 7)
        rows[:, [0, 1, 2, 3, *range(5, 15)]] /= scale
        return rows

    def _face(self, picture: Picture, row: Boxes) -> Face:
        points = row[5:].reshape(5, 2)
        aligned = _align(picture, points)
        fc1 = self._embedder.run(aligned.transpose(2, 0, 1)[None])[0][0]
        box = np.clip(row[:4], 0, [picture.shape[1], picture.shape[0]] * 2)
        embedding = fc1 / max(float(np.linalg.norm(fc1)), 1e-9)
        landmarks = tuple(map(tuple, points.tolist()))
        return Face(float(row[4]), tuple(box.tolist()), landmarks, tuple(embedding.tolist()), _sharpness(aligned))


def _sharpness(aligned: Floats) -> float:
    """The variance of the Laplacian."""
    gray = aligned.mean(axis=2)
    around = gray[:-2, 1:-1] + gray[2:, 1:-1] + gray[1:-1, :-2] + gray[1:-1, 2:]
    return float((around - 4 * gray[1:-1, 1:-1]).var())


def _tiles(picture: Picture, side: int) -> Iterator[tuple[Picture, float, Points, Boxes]]:
    """The whole picture and, where it is larger, tiles: pixels, scale, top left corner, inner edges."""
    nowhere = np.array([-np.inf, -np.inf, np.inf, np.inf])
    canvas, scale = letterbox(picture, INPUT_SIDE, INPUT_SIDE)
    yield canvas, scale, np.zeros(2), nowhere
    larger = min(side, max(picture.shape[:2])) / max(picture.shape[:2])
    if larger <= scale:
        return
    height, width = (round(s * larger) for s in picture.shape[:2])
    large = resize(picture, width, height)
    for top in _tile_starts(height):
        for left in _tile_starts(width):
            tile = large[top : top + INPUT_SIDE, left : left + INPUT_SIDE]
            canvas = np.zeros((INPUT_SIDE, INPUT_SIDE, 3), np.uint8)
            canvas[: tile.shape[0], : tile.shape[1]] = tile
            ends = (left + INPUT_SIDE < width, top + INPUT_SIDE < height)
            inner = np.where([left > 0, top > 0, *ends], [0, 0, INPUT_SIDE, INPUT_SIDE], nowhere)
            yield canvas, larger, np.array([left, top], np.float64), inner


def _tile_starts(length: int) -> list[int]:
    count = max(1, -(-(length - _TILE_OVERLAP) // (INPUT_SIDE - _TILE_OVERLAP)))
    return [round(n * (length - INPUT_SIDE) / max(1, count - 1)) for n in range(count)] if length > INPUT_SIDE else [0]


def _decode(outputs: dict[str, Floats], stride: int) -> Boxes:
    cls, obj, box, points = (outputs[f"{name}_{stride}"][0] for name in ("cls", "obj", "bbox", "kps"))
    cells = INPUT_SIDE // stride
    at = np.stack(np.meshgrid(np.arange(cells), np.arange(cells)), axis=-1).reshape(-1, 2)
    middle, half = (at + box[:, :2]) * stride, np.exp(np.minimum(box[:, 2:], 10)) * stride / 2
    score = np.sqrt(np.clip(cls, 0, 1) * np.clip(obj, 0, 1))
    landmarks = (np.tile(at, 5) + points) * stride
    return np.concatenate([middle - half, middle + half, score, landmarks], axis=1, dtype=np.float64)


def _align(picture: Picture, points: Points) -> Floats:
    """The face after the similarity transform that fits its landmarks to the template by least squares."""
    seen = points[:, 0] + 1j * points[:, 1]
    wanted = ARCFACE_LANDMARKS - ARCFACE_LANDMARKS.mean()
    turn = (wanted.conj() @ (seen - seen.mean())) / (wanted.conj() @ wanted)
    corners = turn * (np.array([0, ALIGNED_SIDE, 1j * ALIGNED_SIDE]) - ARCFACE_LANDMARKS.mean()) + seen.mean()
    return crop_parallelogram(picture, np.stack([corners.real, corners.imag], axis=1), ALIGNED_SIDE, ALIGNED_SIDE)
