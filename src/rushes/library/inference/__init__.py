"""The inference service: models of this machine for callers elsewhere; no home, no ledger, no database."""

from rushes.library.inference.films import Films
from rushes.library.inference.gate import Busy, Cancelled, Check, Gate, Queue
from rushes.library.inference.service import Health, InferenceService
from rushes.library.inference.stereo import StereoFilms

__all__ = ["Busy", "Cancelled", "Check", "Films", "Gate", "Health", "InferenceService", "Queue", "StereoFilms"]
