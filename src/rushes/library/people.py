"""The people of a home: who is seen, and what is said about them."""

from rushes.annotations.people import PersonSummary
from rushes.index.changes import Track
from rushes.index.people import Person

__all__ = ["Person", "PersonSummary", "Track"]
