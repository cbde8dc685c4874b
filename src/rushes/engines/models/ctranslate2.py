"""What a folder must hold to be a Whisper model in CTranslate2 form; nothing in it runs code."""

from pathlib import Path

from rushes.domain.errors import ModelMissing

WEIGHTS = "model.bin"
_NEEDED = (WEIGHTS, "config.json", "tokenizer.json")  # without tokenizer.json the library downloads it
_HINT = "Give a folder with model.bin, config.json, tokenizer.json and vocabulary.* (ct2-transformers-converter)."
_PICKLES = {".pt", ".pth", ".pkl", ".pickle", ".ckpt"}
_MAGIC = b"WhisperSpec\0"


def check_folder(folder: Path) -> Path:
    """The folder, if it holds a Whisper model in CTranslate2 form. Raises ModelMissing."""
    if folder.suffix in _PICKLES:
        raise ModelMissing(f"{folder.name} is a pickle, which is not accepted", _HINT)
    for name in _NEEDED:
        if not (folder / name).is_file():
            raise ModelMissing(f"no {name} in the model folder {folder.name}", _HINT)
    if not any(folder.glob("vocabulary.*")):
        raise ModelMissing(f"no vocabulary in the model folder {folder.name}", _HINT)
    with (folder / WEIGHTS).open("rb") as f:
        head = f.read(6 + len(_MAGIC))
    if head[6:] != _MAGIC:  # a version, the length of a name, then the name
        raise ModelMissing(f"{folder.name}/{WEIGHTS} is not a CTranslate2 Whisper model", _HINT)
    return folder
