"""Pictures as models take them: decoded, resized and cropped to the same numbers on every machine; boxes likewise."""

from collections.abc import Sequence

import av
import numpy as np
import simplejpeg
from av.video.reformatter import Interpolation, VideoReformatter
from numpy.typing import NDArray

from rushes.domain.errors import BadMedia
from rushes.engines.port import Jpeg, Picture

Boxes = NDArray[np.float64]  # n x (left, top, right, bottom)
Points = NDArray[np.float64]  # n x (x, y), in pixels
Floats = NDArray[np.float32]
MAX_PIXELS = 36_000_000
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
_BILINEAR = Interpolation.BILINEAR | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT | Interpolation.BITEXACT


def nms(boxes: Boxes, scores: NDArray[np.floating], iou_threshold: float, most: int | None = None) -> list[int]:
    """Indices of the boxes that stay, best first, at most `most`: none overlaps a better one by more than that."""
    left = list(np.lexsort((np.arange(len(scores)), -scores)))
    kept: list[int] = []
    while left and len(kept) != most:
        first = left.pop(0)
        kept.append(int(first))
        ious = _iou(boxes[first], boxes[left])
        left = [n for n, s in zip(left, ious, strict=True) if s <= iou_threshold]
    return kept


def _iou(box: NDArray[np.float64], others: Boxes) -> NDArray[np.float64]:
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    both = np.prod(np.clip(high - low, 0, None), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1) + np.prod(box[2:] - box[:2])
    return np.asarray(both / np.maximum(areas - both, 1e-9))


def decode_jpeg(jpeg: bytes) -> Picture:
    """The RGB array of a JPEG.

    Raises:
        BadMedia: it is none, or too large.
    """
    try:
        height, width, *_ = simplejpeg.decode_jpeg_header(jpeg)
        if height * width > MAX_PIXELS:
            raise BadMedia(f"a picture of {width} x {height} is too large")
        return np.asarray(simplejpeg.decode_jpeg(jpeg, "RGB"), np.uint8)
    except ValueError as e:
        raise BadMedia(f"a picture cannot be decoded: {e}") from e


def pixels(picture: Picture | Jpeg) -> Picture:
    """The RGB array of a picture, however it came."""
    return decode_jpeg(picture) if isinstance(picture, bytes) else picture


def resize(picture: Picture, width: int, height: int) -> Picture:
    """The whole picture in another size: 2 ms for 720p."""
    if picture.shape[:2] == (height, width):
        return picture
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
    small = VideoReformatter().reformat(frame, width, height, "rgb24", interpolation=_BILINEAR, threads=1)
    return small.to_ndarray().astype(np.uint8, copy=False)


def nchw(picture: Picture, mean: Sequence[float] = IMAGENET_MEAN, std: Sequence[float] = IMAGENET_STD) -> Floats:
    """A batch of one: RGB planes from 0 to 1, normalised."""
    values = (picture / np.float32(255) - np.asarray(mean, np.float32)) / np.asarray(std, np.float32)
    return np.asarray(values.transpose(2, 0, 1)[None], np.float32)


def letterbox(picture: Picture, width: int, height: int) -> tuple[Picture, float]:
    """The picture scaled to fit into the top left of a black one, and the scale."""
    scale = min(width / picture.shape[1], height / picture.shape[0])
    sides = zip((width, height), picture.shape[1::-1], strict=True)
    w, h = (max(1, min(most, round(side * scale))) for most, side in sides)
    canvas = np.zeros((height, width, 3), np.uint8)
    canvas[:h, :w] = resize(picture, w, h)
    return canvas, scale


def crop_parallelogram(picture: Picture, corners: Points, width: int, height: int) -> Floats:
    """A parallelogram (top left, top right, bottom left) as width x height pixels, 0 to 255; shrinks by averaging."""
    top_left, across, down = corners[0], corners[1] - corners[0], corners[2] - corners[0]
    fine = max(1, round(max(np.hypot(*across) / width, np.hypot(*down) / height)))
    x = (np.arange(width * fine) + 0.5) / (width * fine)
    y = (np.arange(height * fine) + 0.5) / (height * fine)
    at = top_left + x[None, :, None] * across + y[:, None, None] * down - 0.5
    found = _bilinear(picture, at[..., 0], at[..., 1])
    return np.asarray(found.reshape(height, fine, width, fine, 3).mean(axis=(1, 3)), np.float32)


def _bilinear(picture: Picture, x: NDArray[np.float64], y: NDArray[np.float64]) -> Floats:
    x, y = np.clip(x, 0, picture.shape[1] - 1), np.clip(y, 0, picture.shape[0] - 1)
    left, top = x.astype(np.intp), y.astype(np.intp)
    right, bottom = np.minimum(left + 1, picture.shape[1] - 1), np.minimum(top + 1, picture.shape[0] - 1)
    fx, fy = (x - left).astype(np.float32)[..., None], (y - top).astype(np.float32)[..., None]
    above = picture[top, left] * (1 - fx) + picture[top, right] * fx
    below = picture[bottom, left] * (1 - fx) + picture[bottom, right] * fx
    return np.asarray(above * (1 - fy) + below * fy, np.float32)
