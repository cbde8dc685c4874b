"""Monocular depth: FastDepth, or any net in ONNX form that gives depth or inverse depth.

What a net expects and gives is told by a small file beside it: `depth.toml`, or `preprocessor_config.json` as models
of the hub have it. Without one it is taken for a net like MiDaS or Depth Anything: inverse depth of colours that are
normalised as for ImageNet.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rushes.domain.errors import ModelMissing
from rushes.domain.keys import JSON
from rushes.engines.devices import Compute
from rushes.engines.images import IMAGENET_MEAN, IMAGENET_STD, Floats, nchw, resize
from rushes.engines.models.formats import DEPTH_DESCRIPTION, HUB_DESCRIPTION
from rushes.engines.nets.onnx import Onnx
from rushes.engines.port import Picture

_MIN_METRES = 0.1  # bounds inverse depth
_SIDE = 518  # for a net of any input size: what Depth Anything was trained with
_SHIPPED = "fastdepth"  # takes RGB from 0 to 1, gives metres
_HINT = 'Write: output = "depth" or "inverse", size = [518, 518], mean = [0.5, 0.5, 0.5], std = [0.5, 0.5, 0.5].'

Triple = tuple[float, float, float]
_PLAIN: tuple[Triple, Triple] = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)  # RGB from 0 to 1


@dataclass(frozen=True, slots=True)
class DepthDescription:
    """What a net expects and gives."""

    mean: Triple = IMAGENET_MEAN
    std: Triple = IMAGENET_STD
    size: tuple[int, int] | None = None  # width and height of its input; None: as the net says
    inverse: bool = True  # it gives inverse depth: larger is nearer


class DepthNet:
    """Runs a net on the whole picture, squeezed into its input size."""

    def __init__(self, folder: Path, compute: Compute) -> None:
        self._net = Onnx(next(iter(sorted(folder.glob("*.onnx")))), compute)
        self._told = describe(folder)
        height, width = (n if isinstance(n, int) else _SIDE for n in self._net.shape[2:4])
        self._size = self._told.size or (width, height)

    def inverse_depth(self, picture: Picture, *, inverse: bool | None) -> Floats:
        """A map of inverse depth: larger is nearer."""
        output = self._net.run(nchw(resize(picture, *self._size), self._told.mean, self._told.std))[0]
        found = np.asarray(output, np.float32).reshape(output.shape[-2:])
        is_inverse = self._told.inverse if inverse is None else inverse
        return found if is_inverse else np.asarray(1 / np.maximum(found, _MIN_METRES), np.float32)


def describe(folder: Path) -> DepthDescription:
    """What the file beside a net says of it.

    Raises:
        ModelMissing: it cannot be understood.
    """
    if folder.name.startswith(_SHIPPED):
        return DepthDescription(*_PLAIN, inverse=False)
    own, hub = folder / DEPTH_DESCRIPTION, folder / HUB_DESCRIPTION
    try:
        if own.is_file():
            return _described(tomllib.loads(own.read_text("utf-8")))
        return _of_hub(json.loads(hub.read_text("utf-8"))) if hub.is_file() else DepthDescription()
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        raise ModelMissing(f"the description of the model {folder.name} cannot be understood: {e}", _HINT) from e


def _described(doc: Mapping[str, JSON]) -> DepthDescription:
    if unknown := doc.keys() - {"output", "size", "mean", "std"}:
        raise ValueError(f"unknown words: {', '.join(sorted(unknown))}")
    output = doc.get("output", "inverse")
    if output not in ("inverse", "depth"):
        raise ValueError(f"output is {output!r}")
    return DepthDescription(*_colours(doc.get("mean"), doc.get("std")), _size(doc.get("size")), output == "inverse")


def _of_hub(doc: Mapping[str, JSON]) -> DepthDescription:
    """Names as in Transformers; nets there give inverse depth unless `depth.toml` says otherwise."""
    size = doc.get("size") or {}
    wanted = _size([size["width"], size["height"]]) if "width" in size else None
    if doc.get("do_normalize") is False:
        return DepthDescription(*_PLAIN, wanted)
    return DepthDescription(*_colours(doc.get("image_mean"), doc.get("image_std")), wanted)


def _size(said: JSON) -> tuple[int, int] | None:
    if said is None:
        return None
    width, height = (int(n) for n in said)
    if not (0 < width <= 4096 and 0 < height <= 4096):
        raise ValueError(f"size is {said}")
    return width, height


def _colours(mean: JSON, std: JSON) -> tuple[Triple, Triple]:
    red, green, blue = map(float, mean or IMAGENET_MEAN)
    spread = tuple(map(float, std or IMAGENET_STD))
    if len(spread) != 3 or not min(spread) > 0:
        raise ValueError(f"std is {std}")
    return (red, green, blue), (spread[0], spread[1], spread[2])
