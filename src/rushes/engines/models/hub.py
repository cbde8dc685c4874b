"""The hub: models by `owner/name`, where the network reaches it; nothing but weights and their notes is taken."""

import re
import shutil
from pathlib import Path

from rushes.domain.errors import RegistryAway

_WANTED = ["*.json", "*.txt", "model.bin", "*.onnx", "*.tflite", "*.safetensors"]
_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


def is_id(name: str) -> bool:
    """Whether that is how models are named there."""
    return _ID.fullmatch(name) is not None


def folder_name(id: str) -> str:
    """What a model of the hub is called among ours."""
    return id.replace("/", "--")


def download(id: str, into: Path) -> None:
    """Fetch a model into an empty folder.

    Raises:
        RegistryAway: the hub cannot be reached, or has no such model.
    """
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - half a second that only this command needs

    try:
        snapshot_download(id, local_dir=into, allow_patterns=_WANTED)
    except Exception as e:
        hint = "Check the network, or bring the folder yourself and name its path in the settings."
        raise RegistryAway(f"could not download {id} from the hub ({type(e).__name__})", hint) from e
    shutil.rmtree(into / ".cache", ignore_errors=True)
