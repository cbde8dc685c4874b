"""Long texts in items of 400 KB: squeezed; and one that never changes is kept in parts beside the rows."""

import base64
import hashlib
import zlib
from collections.abc import Iterable

from rushes.aws.table import Item, Key, Table

LONG = 4096  # characters: a row is written whole with every need that is met, and is paid by the KB
PART = 300_000
_FAR = "\x01"  # what is kept elsewhere begins with this


def squeezed(text: str) -> str:
    """JSON as it is kept in a row; it never begins with a z."""
    return "z" + _small(text) if len(text) > LONG else text


def loosened(kept: str) -> str:
    """The JSON that was kept."""
    return _large(kept[1:]) if kept.startswith("z") else kept


def far(job: str, text: str) -> tuple[str, list[Item]]:
    """What a row keeps for a text, and the items that hold a long one: named by its hash, whoever writes it."""
    if len(text) <= LONG and not text.startswith(_FAR):
        return text, []
    small = _small(text)
    parts = [small[n : n + PART] for n in range(0, len(small), PART)]
    kept = f"{_FAR}{hashlib.sha256(text.encode()).hexdigest()[:32]}#{len(parts)}"
    return kept, [{"pk": pk, "sk": sk, "body": part} for (pk, sk), part in zip(_keys(job, kept), parts, strict=True)]


def near(table: Table, kept: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The texts for what rows of these jobs keep; long ones are read at once."""
    wanted = {text: _keys(job, text) for job, text in kept}
    items = table.fetch(key for keys in wanted.values() for key in keys)
    read = {text: "".join(str(items[key]["body"]) for key in keys) for text, keys in wanted.items()}
    return {text: _large(small) if wanted[text] else text for text, small in read.items()}


def _keys(job: str, kept: str) -> list[Key]:
    if not kept.startswith(_FAR):
        return []
    name, _, parts = kept[1:].partition("#")
    return [(f"job#{job}", f"text#{name}#{n:03d}") for n in range(int(parts))]


def _small(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _large(small: str) -> str:
    return zlib.decompress(base64.b64decode(small)).decode()
