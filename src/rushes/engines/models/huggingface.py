"""Models of the Hugging Face Hub by `owner/name`: only weights and their metadata are downloaded."""

import re
import shutil
from pathlib import Path

from rushes.domain.errors import RegistryAway

_WANTED = ["*.json", "*.txt", "model.bin", "*.onnx", "*.tflite", "*.safetensors"]
_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


def is_id(name: str) -> bool:
    """Whether a name has the form `owner/name`."""
    return _ID.fullmatch(name) is not None


def folder_name(id: str) -> str:
    """The folder of a model in the store."""
    return id.replace("/", "--")


def download(id: str, into: Path) -> None:
    """Fetch a model into an empty folder. Raises RegistryAway if the hub is unreachable or has no such model."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - takes half a second

    try:
        snapshot_download(id, local_dir=into, allow_patterns=_WANTED)
    except Exception as e:
        hint = "Check the network, or copy the folder here and give its path in the settings."
        raise RegistryAway(f"could not fetch {id} from the hub ({type(e).__name__})", hint) from e
    shutil.rmtree(into / ".cache", ignore_errors=True)
