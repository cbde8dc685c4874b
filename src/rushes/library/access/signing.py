"""Signatures of cursors and cookies, by a secret of the home that every server finds in its records."""

import base64
import hashlib
import hmac
import secrets
from contextlib import suppress
from dataclasses import dataclass

from rushes.domain.errors import Refused
from rushes.home import Home
from rushes.records.port import Conflict

SECRET, CURSORS = "secret", "cursors"  # the kind of record, and the one for cursors
SIZE = 16  # bytes of a signature


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs and checks."""

    key: bytes

    @staticmethod
    def of(home: Home) -> "Signer":
        """The home's own; the first server makes it, and of two that do so at once one."""
        found = home.records.get(SECRET, home.owner, CURSORS)
        if found is None:
            with suppress(Conflict):
                home.records.put(SECRET, home.owner, CURSORS, {"key": secrets.token_hex(32)}, expected=0)
            found = home.records.get(SECRET, home.owner, CURSORS)
        assert found
        return Signer(bytes.fromhex(str(found.doc["key"])))

    def sign(self, data: bytes, of: str) -> bytes:
        """The signature of some data; `of` names what it belongs to."""
        return hmac.digest(self.key, f"{of}\0".encode("utf-8", "replace") + data, hashlib.sha256)[:SIZE]

    def is_signed(self, signature: bytes, data: bytes, of: str) -> bool:
        """Whether we signed it, compared in constant time."""
        return hmac.compare_digest(signature, self.sign(data, of))

    def seal(self, cursor: str, of: str) -> str:
        """A store's cursor as clients carry it, signed: nothing made up, or of another list, reaches the store."""
        data = cursor.encode("utf-8", "surrogatepass")
        return base64.urlsafe_b64encode(self.sign(data, of) + data).decode().rstrip("=") if cursor else ""

    def unseal(self, cursor: str, of: str) -> str:
        """The store's cursor again.

        Raises:
            Refused: it is none of ours, or of another list.
        """
        if not cursor:
            return ""
        with suppress(ValueError):
            raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            found = raw[SIZE:].decode("utf-8", "surrogatepass")
            if self.is_signed(raw[:SIZE], raw[SIZE:], of) and self.seal(found, of) == cursor:
                return found
        hint = "Use the cursor of the previous page with the same filters, or leave it out."
        raise Refused("invalid cursor for this list", hint)
