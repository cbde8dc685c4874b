"""Lists in pages: an opaque cursor, the rows, and a link to the next ones; never an offset, because rows move."""

import base64
import binascii
import hashlib
from typing import Annotated, Generic, TypeVar

from fastapi import Query, Request
from pydantic import BaseModel

from rushes.domain.errors import Refused

T = TypeVar("T")

Limit = Annotated[int, Query(ge=1, le=500, description="how many rows at most")]
Cursor = Annotated[str, Query(max_length=1000, description="where to go on: `cursor` of the page before")]


class Page(BaseModel, Generic[T]):
    """Some rows, and where the next ones begin ("" at the end)."""

    items: list[T]
    cursor: str = ""
    next: str | None = None


def page(request: Request, items: list[T], cursor: str, of: str) -> Page[T]:
    """A page whose next one is found at `next`; `of` names its list."""
    if not cursor:
        return Page(items=items)
    sealed = seal(cursor, of)
    link = request.url.include_query_params(cursor=sealed)
    return Page(items=items, cursor=sealed, next=f"{link.path}?{link.query}")


def seal(cursor: str, of: str) -> str:
    """A store's cursor as clients carry it, with a checksum: nothing made up, or of another list, reaches the store."""
    data = cursor.encode()
    return base64.urlsafe_b64encode(_check(data, of) + data).decode().rstrip("=")


def unseal(cursor: str, of: str) -> str:
    """The store's cursor again.

    Raises:
        Refused: it is none of ours, or of another list.
    """
    if not cursor:
        return ""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        if raw[:6] == _check(raw[6:], of):
            return raw[6:].decode()
    except (ValueError, binascii.Error):
        pass
    raise Refused(
        "invalid cursor for this list", "Use the cursor of the previous page with the same filters, or leave it out."
    )


def _check(data: bytes, of: str) -> bytes:
    return hashlib.blake2b(f"{of}\0".encode("utf-8", "replace") + data, digest_size=6, person=b"rushes").digest()
