"""Uploads as surfaces see them: films that are sent here, part by part."""

from rushes.uploads.service import PARTS, Part, Uploads
from rushes.uploads.staging import Busy
from rushes.uploads.state import Upload

__all__ = ["PARTS", "Busy", "Part", "Upload", "Uploads"]
