"""What a folder must hold to be loaded as a speech model: CTranslate2 files, and nothing that runs code."""

from pathlib import Path

from rushes.domain.errors import ModelMissing

WEIGHTS = "model.bin"
_NEEDED = (WEIGHTS, "config.json", "tokenizer.json")  # without tokenizer.json the library would ask the network
_HINT = "Give a folder with model.bin, config.json, tokenizer.json and vocabulary.* (ct2-transformers-converter)."
_PICKLES = {".pt", ".pth", ".pkl", ".pickle", ".ckpt"}
_MARK = b"WhisperSpec\0"


def checked(folder: Path) -> Path:
    """The folder, if it holds a Whisper model in CTranslate2 form.

    Raises:
        ModelMissing: it does not; pickles are refused, for loading one runs its code.
    """
    if folder.suffix in _PICKLES:
        raise ModelMissing(f"{folder.name} is a pickle: refused", _HINT)
    for name in _NEEDED:
        if not (folder / name).is_file():
            raise ModelMissing(f"no {name} in the model folder {folder.name}", _HINT)
    if not any(folder.glob("vocabulary.*")):
        raise ModelMissing(f"no vocabulary in the model folder {folder.name}", _HINT)
    with (folder / WEIGHTS).open("rb") as f:
        head = f.read(6 + len(_MARK))
    if head[6:] != _MARK:  # a version, the length of a name, then the name
        raise ModelMissing(f"{folder.name}/{WEIGHTS} is not a CTranslate2 Whisper model", _HINT)
    return folder
