"""The people of a home: list, name, merge, split, hide."""

from rushes.annotations.people import PersonSummary
from rushes.index.changes import Track
from rushes.index.people import Person

__all__ = ["Person", "PersonSummary", "Track"]
