"""The library that a command works with; apart, because opening it brings the whole machinery along."""

from rushes.library import Library
from rushes.surfaces.cli.session import Session
from rushes.telemetry import log_to


def opened(session: Session, *, create: bool = True) -> Library:
    """The library of the home that the person chose."""
    library = Library(session.home or None, create=create)
    log_to(level="debug" if session.verbose else library.house.settings.log_level)
    return library
