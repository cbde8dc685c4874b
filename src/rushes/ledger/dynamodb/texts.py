"""Long texts on DynamoDB (400 KB an item): compressed, or split into parts if they never change."""

import base64
import hashlib
import zlib
from collections.abc import Iterable

from rushes.aws.table import Item, Key, Table

MAX_INLINE = 4096  # characters: a row is written whole with every need that is met, and is paid by the KB
PART = 300_000
_REFERENCE = "\x01"  # a text that is kept in parts is named by this and its hash


def compress_json(text: str) -> str:
    """JSON as a row keeps it; plain JSON never begins with a z."""
    return "z" + _compress(text) if len(text) > MAX_INLINE else text


def decompress_json(kept: str) -> str:
    """The JSON that a row keeps."""
    return _decompress(kept[1:]) if kept.startswith("z") else kept


def split_text(job: str, text: str) -> tuple[str, list[Item]]:
    """What a row keeps for a text, and the items that hold a long one: named by its hash, whoever writes it."""
    if len(text) <= MAX_INLINE and not text.startswith(_REFERENCE):
        return text, []
    small = _compress(text)
    parts = [small[n : n + PART] for n in range(0, len(small), PART)]
    kept = f"{_REFERENCE}{hashlib.sha256(text.encode()).hexdigest()[:32]}#{len(parts)}"
    return kept, [{"pk": pk, "sk": sk, "body": part} for (pk, sk), part in zip(_keys(job, kept), parts, strict=True)]


def join_texts(table: Table, kept: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The texts for what rows of these jobs keep; long ones are read at once."""
    wanted = {text: _keys(job, text) for job, text in kept}
    items = table.fetch(key for keys in wanted.values() for key in keys)
    read = {text: "".join(str(items[key]["body"]) for key in keys) for text, keys in wanted.items()}
    return {text: _decompress(small) if wanted[text] else text for text, small in read.items()}


def _keys(job: str, kept: str) -> list[Key]:
    if not kept.startswith(_REFERENCE):
        return []
    name, _, parts = kept[1:].partition("#")
    return [(f"job#{job}", f"text#{name}#{n:03d}") for n in range(int(parts))]


def _compress(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _decompress(small: str) -> str:
    return zlib.decompress(base64.b64decode(small)).decode()
