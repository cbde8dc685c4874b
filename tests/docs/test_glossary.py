"""The glossary and the code agree: every word of the domain and the ports has its entry, and every entry exists."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "rushes"
PORTS = ("ledger", "records", "transport", "blobs", "index", "engines", "stages", "sources")
WORDS = [*SRC.glob("domain/*.py"), *(SRC / port / "port.py" for port in PORTS)]

# One word, one meaning: at most one class of each of these names.
ONCE = """Asked Blob Found Frame Heard Kept Line Look Made Moment Order Part Place Said Segment Shot Thing Thumbnail
Token Told Track Turn View Window""".split()  # noqa: SIM905 - read as a list
# Words that were replaced by those of the field: no class and no module may have them.
GONE = """Beat Desk Ears Heard Hearing Hears House Kept Listener Look Looks Outfit Sees Wish
aside asked beat deed desk doubts errands gone
happenings house itself kept laid letters listener looks made moved nothing opened overlap reel said sight straight
tally there trouble typeset watched""".split()  # noqa: SIM905


def classes(file: Path) -> list[str]:
    return [node.name for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.ClassDef)]


def rows() -> list[list[str]]:
    lines = (ROOT / "docs" / "glossary.md").read_text("utf-8").splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return table[2:]


def entries() -> set[str]:
    """The names of the column "in code"; a module stands for all its classes."""
    return {name for row in rows() for name in re.findall(r"`([\w/.]+)`", row[2])}


def test_every_row_has_a_word_a_meaning_and_its_code() -> None:
    assert rows()
    assert [row for row in rows() if len(row) != 3 or not all(row[:2])] == []


@pytest.mark.parametrize("file", WORDS, ids=lambda file: str(file.relative_to(SRC)))
def test_every_class_of_the_domain_and_the_ports_has_its_entry(file: Path) -> None:
    known = entries()
    public = [name for name in classes(file) if not name.startswith("_")]
    assert [name for name in public if name not in known and str(file.relative_to(SRC)) not in known] == []


def test_every_entry_exists_in_the_code() -> None:
    defined = {name for file in SRC.rglob("*.py") for name in classes(file)}
    missing = [name for name in entries() if not (SRC / name).is_file() and name not in defined]
    assert sorted(missing) == []


def test_no_word_stands_twice() -> None:
    words = Counter(word.strip() for row in rows() for word in row[0].split(","))
    assert [word for word, count in words.items() if count > 1] == []


def test_homonyms_stay_gone() -> None:
    defined = Counter(name for file in SRC.rglob("*.py") for name in classes(file))
    assert {name: defined[name] for name in ONCE if defined[name] > 1} == {}
    modules = {file.stem for file in SRC.rglob("*.py")} | {file.name for file in SRC.rglob("*") if file.is_dir()}
    assert sorted(name for name in GONE if name in defined or name in modules) == []
