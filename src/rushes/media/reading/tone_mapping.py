"""Tone mapping of HDR pictures to SDR in BT.709, by extended Reinhard on the strongest channel."""

import tempfile
from fractions import Fraction

import av
import numpy as np
from av.filter import Graph
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc
from numpy.typing import NDArray

_PQ, _HLG = 16, 18  # transfer characteristics of H.273
_REFERENCE_WHITE, _PEAK_LUMINANCE = 203.0, 1000.0  # cd/m2: BT.2408, and common mastering
_LUT_SIZE = 33
_BT2020_TO_709 = np.array([[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]])
_SCALE_FLAGS = "flags=bicubic+accurate_rnd+full_chroma_int+bitexact"

Light = NDArray[np.float64]


def is_hdr(frame: av.VideoFrame) -> bool:
    """Whether a picture has an HDR transfer function (PQ or HLG)."""
    return int(frame.color_trc) in {_PQ, _HLG}


class ToneMapper:
    """Maps frames to SDR pictures of one size and format; rgb48 takes the same path on every processor."""

    def __init__(self, size: tuple[int, int], pixels: str) -> None:
        self._size, self._pixels = size, pixels
        self._graphs: dict[tuple[int, int, int, str], Graph] = {}  # a film may change its transfer function

    def map(self, frame: av.VideoFrame) -> av.VideoFrame:
        """The picture in SDR."""
        coded = (int(frame.color_trc), frame.width, frame.height, frame.format.name)
        if coded not in self._graphs:
            self._graphs[coded] = self._graph_for(frame)
        graph = self._graphs[coded]
        graph.vpush(frame)
        shown = graph.vpull()
        shown.color_trc, shown.color_primaries = ColorTrc.BT709, ColorPrimaries.BT709
        shown.colorspace, shown.color_range = Colorspace.ITU709, ColorRange.MPEG
        return shown

    def _graph_for(self, frame: av.VideoFrame) -> Graph:
        graph = Graph()
        graph.threads = 1
        base = frame.time_base or Fraction(1, 1000)
        source = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=base)
        width, height = self._size
        with tempfile.NamedTemporaryFile("w", suffix=".cube") as file:
            file.write(lut3d(int(frame.color_trc)))
            file.flush()
            steps = (
                graph.add("scale", f"{width}:{height}:in_color_matrix=bt2020:{_SCALE_FLAGS}"),
                graph.add("format", "pix_fmts=rgb48le"),
                graph.add("lut3d", file=file.name, interp="tetrahedral"),  # as keywords: folders have odd names
                graph.add("scale", f"out_color_matrix=bt709:out_range=limited:{_SCALE_FLAGS}"),
                graph.add("format", f"pix_fmts={self._pixels}"),
            )
            graph.link_nodes(source, *steps, graph.add("buffersink")).configure()
        return graph


def lut3d(transfer: int) -> str:
    """A .cube table from HDR to SDR code values."""
    axis = np.linspace(0, 1, _LUT_SIZE)
    blue, green, red = np.meshgrid(axis, axis, axis, indexing="ij")
    coded = np.stack([red, green, blue], axis=-1).reshape(-1, 3)
    light = _pq_eotf(coded) if transfer == _PQ else _hlg_eotf(coded)
    light = np.maximum(0, light / _REFERENCE_WHITE @ _BT2020_TO_709.T)
    shown = np.clip(_reinhard(light), 0, 1) ** (1 / 2.4)
    rows = "\n".join(f"{r:.6f} {g:.6f} {b:.6f}" for r, g, b in shown)
    return f"LUT_3D_SIZE {_LUT_SIZE}\n{rows}\n"


def _reinhard(light: Light) -> Light:
    """Extended Reinhard on the strongest channel, so that colours keep their hue; light in units of white."""
    peak, most = _PEAK_LUMINANCE / _REFERENCE_WHITE, light.max(axis=1, keepdims=True)
    rolled: Light = light * (1 + most / peak**2) / (1 + most)
    return rolled


def _pq_eotf(coded: Light) -> Light:
    """SMPTE ST 2084."""
    m1, m2, c1, c2, c3 = 2610 / 16384, 2523 / 32, 3424 / 4096, 2413 / 128, 2392 / 128
    power = coded ** (1 / m2)
    light: Light = 10_000 * (np.maximum(power - c1, 0) / (c2 - c3 * power)) ** (1 / m1)
    return light


def _hlg_eotf(coded: Light) -> Light:
    """ARIB STD-B67 at a peak of 1000 cd/m2."""
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    scene = np.where(coded <= 0.5, coded**2 / 3, (np.exp((coded - c) / a) + b) / 12)
    luminance = scene @ np.array([0.2627, 0.6780, 0.0593])
    light: Light = _PEAK_LUMINANCE * scene * luminance[:, None] ** 0.2
    return light
