"""Accepted model formats: folders of ONNX, TFLite, safetensors or CTranslate2, none of which runs code."""

from pathlib import Path

from rushes.domain.errors import ModelMissing
from rushes.engines.models import ctranslate2

_MAGIC = {".onnx": (0, b"\x08"), ".tflite": (4, b"TFL3"), ".safetensors": (8, b"{")}
_HINT = "Give a folder with .onnx, .tflite or .safetensors files, or a Whisper model in CTranslate2 form."


def check_folder(folder: Path) -> Path:
    """The folder, if it holds weights in an accepted format.

    Raises:
        ModelMissing: it does not; a pickle is refused under every name, because loading it runs its code.
    """
    found = weights(folder)
    if found == [folder / ctranslate2.WEIGHTS]:
        return ctranslate2.check_folder(folder)
    for file in found:
        at, magic = _MAGIC[file.suffix]
        with file.open("rb") as f:
            if f.read(at + len(magic))[at:] != magic:
                raise ModelMissing(f"{folder.name}/{file.name} does not have the format that its name says", _HINT)
    return folder


def weights(folder: Path) -> list[Path]:
    """The weight files of a model, by name."""
    known = sorted(f for f in folder.glob("*") if f.suffix in _MAGIC and f.is_file())
    return known or [folder / ctranslate2.WEIGHTS]
