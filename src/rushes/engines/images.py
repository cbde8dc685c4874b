"""Pictures as models want them: RGB arrays, turned and resized to the same numbers on every machine."""

import av
import numpy as np
import simplejpeg
from av.video.reformatter import Interpolation, VideoReformatter
from numpy.typing import NDArray

from rushes.engines.port import Picture

Points = NDArray[np.float64]  # n x (x, y), in pixels
Floats = NDArray[np.float32]

_SMOOTH = Interpolation.BILINEAR | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT | Interpolation.BITEXACT


def decoded(jpeg: bytes) -> Picture:
    """The picture in a JPEG."""
    return np.asarray(simplejpeg.decode_jpeg(jpeg, "RGB"), np.uint8)


def resized(picture: Picture, width: int, height: int) -> Picture:
    """The whole picture in another size: 2 ms for 720p."""
    if picture.shape[:2] == (height, width):
        return picture
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
    small = VideoReformatter().reformat(frame, width, height, "rgb24", interpolation=_SMOOTH, threads=1)
    return small.to_ndarray().astype(np.uint8, copy=False)


def fitted(picture: Picture, width: int, height: int) -> tuple[Picture, float]:
    """The picture as large as fits into the top left of a black one, and by how much it was scaled."""
    scale = min(width / picture.shape[1], height / picture.shape[0])
    w, h = (
        max(1, min(most, round(side * scale))) for most, side in ((width, picture.shape[1]), (height, picture.shape[0]))
    )
    canvas = np.zeros((height, width, 3), np.uint8)
    canvas[:h, :w] = resized(picture, w, h)
    return canvas, scale


def sampled(picture: Picture, corners: Points, width: int, height: int) -> Floats:
    """What lies in a parallelogram (top left, top right, bottom left), laid out as width x height; 0 to 255.

    Where it is shrunk, several samples make a pixel, so that thin strokes do not vanish.
    """
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
