"""Tiny nets in ONNX form, written byte by byte: enough of the format for a test to make its own."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FLOAT, INT64 = 1, 7
Dim = int | str


def write(
    file: Path,
    nodes: Sequence[bytes],
    given: tuple[str, int, Sequence[Dim]],
    made: str,
    weights: dict[str, NDArray[np.float32]] | None = None,
) -> None:
    """A net: its nodes, its input (name, type, shape), its output, its weights."""
    graph = b"".join(_field(1, node) for node in nodes) + _text(2, "tiny")
    graph += b"".join(_field(5, _tensor(name, values)) for name, values in (weights or {}).items())
    graph += _field(11, _value(*given)) + _field(12, _text(1, made) + _field(2, _field(1, _number(1, FLOAT))))
    file.write_bytes(_number(1, 8) + _field(7, graph) + _field(8, _number(2, 13)))


def node(kind: str, inputs: Sequence[str], output: str, **attributes: int | Sequence[int]) -> bytes:
    """One operation."""
    data = b"".join(_text(1, name) for name in inputs) + _text(2, output) + _text(4, kind)
    return data + b"".join(_field(5, _attribute(name, value)) for name, value in attributes.items())


def _attribute(name: str, value: int | Sequence[int]) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, 2)
    return _text(1, name) + b"".join(_number(8, n) for n in value) + _number(20, 7)


def _value(name: str, kind: int, shape: Sequence[Dim]) -> bytes:
    dims = b"".join(_field(1, _number(1, d) if isinstance(d, int) else _text(2, d)) for d in shape)
    return _text(1, name) + _field(2, _field(1, _number(1, kind) + _field(2, dims)))


def _tensor(name: str, values: NDArray[np.float32]) -> bytes:
    dims = b"".join(_number(1, n) for n in values.shape)
    return dims + _number(2, FLOAT) + _text(8, name) + _field(9, np.asarray(values, "<f4").tobytes())


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
