"""What may be loaded as a model: folders of ONNX, TFLite, safetensors or CTranslate2, and nothing that runs code."""

from pathlib import Path

from rushes.domain.errors import ModelMissing
from rushes.engines.models import whisper_dir

_MARKS = {".onnx": (0, b"\x08"), ".tflite": (4, b"TFL3"), ".safetensors": (8, b"{")}
_HINT = "Give a folder with .onnx, .tflite or .safetensors files, or a Whisper model in CTranslate2 form."


def checked(folder: Path) -> Path:
    """The folder, if it holds weights in a form that is known to hold numbers only.

    Raises:
        ModelMissing: it does not; pickles are refused under every name, for loading one runs its code.
    """
    found = weights(folder)
    if found == [folder / whisper_dir.WEIGHTS]:
        return whisper_dir.checked(folder)
    for file in found:
        at, mark = _MARKS[file.suffix]
        with file.open("rb") as f:
            if f.read(at + len(mark))[at:] != mark:
                raise ModelMissing(f"{folder.name}/{file.name} has the wrong format: refused", _HINT)
    return folder


def weights(folder: Path) -> list[Path]:
    """The files that decide what a model says, in order of their names."""
    known = sorted(f for f in folder.glob("*") if f.suffix in _MARKS and f.is_file())
    return known or [folder / whisper_dir.WEIGHTS]
