"""Accepted model formats: folders of ONNX, TFLite, safetensors or CTranslate2, none of which runs code."""

from pathlib import Path

from rushes.domain.errors import ModelMissing

_WHISPER_WEIGHTS = "model.bin"
_NEEDED = (_WHISPER_WEIGHTS, "config.json", "tokenizer.json")  # without tokenizer.json the library downloads it
_CT2_HINT = "Give a folder with model.bin, config.json, tokenizer.json and vocabulary.* (ct2-transformers-converter)."
_PICKLES = {".pt", ".pth", ".pkl", ".pickle", ".ckpt"}
_WHISPER_MAGIC = b"WhisperSpec\0"
_MAGIC = {".onnx": (0, b"\x08"), ".tflite": (4, b"TFL3"), ".safetensors": (8, b"{")}
_HINT = "Give a folder with .onnx, .tflite or .safetensors files, or a Whisper model in CTranslate2 form."
DEPTH_DESCRIPTION, HUB_DESCRIPTION = "depth.toml", "preprocessor_config.json"  # what a net expects, beside it
_OF_PAIRS = ("tokenizer.json", "pictures.toml")  # what a pair for pictures and texts has beside its nets


def _check_whisper(folder: Path) -> Path:
    """The folder, if it holds a Whisper model in CTranslate2 form. Raises ModelMissing."""
    if folder.suffix in _PICKLES:
        raise ModelMissing(f"{folder.name} is a pickle, which is not accepted", _CT2_HINT)
    for name in _NEEDED:
        if not (folder / name).is_file():
            raise ModelMissing(f"no {name} in the model folder {folder.name}", _CT2_HINT)
    if not any(folder.glob("vocabulary.*")):
        raise ModelMissing(f"no vocabulary in the model folder {folder.name}", _CT2_HINT)
    with (folder / _WHISPER_WEIGHTS).open("rb") as f:
        head = f.read(6 + len(_WHISPER_MAGIC))
    if head[6:] != _WHISPER_MAGIC:  # a version, the length of a name, then the name
        raise ModelMissing(f"{folder.name}/{_WHISPER_WEIGHTS} is not a CTranslate2 Whisper model", _CT2_HINT)
    return folder


def check_folder(folder: Path) -> Path:
    """The folder, if it holds weights in an accepted format.

    Raises:
        ModelMissing: it does not; a pickle is refused under every name, because loading it runs its code.
    """
    found = weights(folder)
    if found == [folder / _WHISPER_WEIGHTS]:
        return _check_whisper(folder)
    for file in found:
        at, magic = _MAGIC[file.suffix]
        with file.open("rb") as f:
            if f.read(at + len(magic))[at:] != magic:
                raise ModelMissing(f"{folder.name}/{file.name} does not have the format that its name says", _HINT)
    return folder


def parts(folder: Path) -> list[Path]:
    """The files that its answers depend on: the weights, and what tells how they are used."""
    told = [folder / name for name in (DEPTH_DESCRIPTION, HUB_DESCRIPTION) if (folder / name).is_file()]
    if not any(folder.glob("*.onnx")):
        return weights(folder)
    return [*weights(folder), *told[:1], *(folder / name for name in _OF_PAIRS if (folder / name).is_file())]


def weights(folder: Path) -> list[Path]:
    """The weight files of a model, by name."""
    known = sorted(f for f in folder.glob("*") if f.suffix in _MAGIC and f.is_file())
    return known or [folder / _WHISPER_WEIGHTS]
