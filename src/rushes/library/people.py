"""The people of a home: who is seen, and what is said about them."""

from dataclasses import dataclass

from rushes.annotations import people
from rushes.annotations.people import PersonSummary, undo
from rushes.home import Home
from rushes.index.changes import Track
from rushes.index.people import Person

__all__ = ["People", "Person", "PersonSummary", "Track"]


@dataclass(frozen=True, slots=True)
class People:
    """The people of one owner; each is named by id, name, or the beginning of an id."""

    home: Home

    def all(self, *, hidden: bool = False) -> list[PersonSummary]:
        """Everybody, named first, then by how often they are seen; the hidden ones only if asked."""
        return people.list_people(self.home, hidden=hidden)

    def with_tracks(self) -> list[Person]:
        """Everybody with every face, hidden ones too."""
        return people.all_people(self.home)

    def name(self, who: str, name: str) -> None:
        """Say what a person is called; the name of another person merges the two."""
        people.name_person(self.home, who, name)

    def merge(self, who: str, into: str) -> None:
        """Say that two are one person."""
        people.merge_people(self.home, who, into)

    def split(self, who: str, video: str, at_us: int, name: str = "") -> str:
        """Say that the face of a person at one place is another person's; answers who that is now."""
        return people.split_person(self.home, who, video, at_us, name)

    def hide(self, who: str, *, hidden: bool = True) -> None:
        """Leave a person out of lists and searches, or show them again."""
        people.hide_person(self.home, who, hidden=hidden)

    def undo(self) -> str:
        """Take back what was last said about people; answers what it was.

        Raises:
            NotFound: there is nothing to take back.
        """
        return undo(self.home)
