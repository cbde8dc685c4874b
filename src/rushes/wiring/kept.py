"""Where a backup keeps its files: a folder of its own, whatever store the home uses."""

from pathlib import Path

from rushes.blobs.folder import FolderBlobs
from rushes.blobs.port import Blobs


def folder(path: Path) -> Blobs:
    """A blob store in a folder."""
    return FolderBlobs(path)
