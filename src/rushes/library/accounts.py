"""Who may come in: accounts with a password (argon2), sessions of browsers, the token of programs; kept as hashes."""

import hashlib
import re
import secrets
import time
from collections import deque
from dataclasses import dataclass, field
from hmac import compare_digest

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from rushes.domain.errors import Refused
from rushes.home import Home
from rushes.settings import Settings

__all__ = ["LEAST", "SESSION_SECONDS", "Accounts", "Settings", "TooManyTries"]
ACCOUNT, SESSION = "account", "session"
SESSION_SECONDS = 30 * 86400
LEAST = 10  # characters of a password
TRIES, WITHIN = 10, 60.0  # wrong passwords in so many seconds, then everybody waits
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}\Z", re.ASCII)


class TooManyTries(Refused):
    """Too many wrong passwords."""

    hint = "Wait a minute."


@dataclass(slots=True)
class Accounts:
    """The accounts of a home."""

    home: Home
    _hasher: PasswordHasher = field(default_factory=PasswordHasher)
    _some: bool = False  # once there is one, it is not asked again
    _wrong: deque[float] = field(default_factory=lambda: deque(maxlen=TRIES))

    @property
    def any(self) -> bool:
        """Whether there is a token or an account at all."""
        if not self._some:
            rows, _ = self.home.records.list(ACCOUNT, self.home.owner, limit=1)
            self._some = bool(rows or self.home.settings.token)
        return self._some

    def create(self, name: str, password: str) -> None:
        """A new account.

        Raises:
            Refused: the name or the password will not do.
            Conflict: there is one of that name.
        """
        if not _NAME.match(name):
            raise Refused("a name has 1 to 40 characters: a-z, 0-9, dot, dash", "For example: ada")
        if not LEAST <= len(password) <= 1000:
            raise Refused(f"a password has at least {LEAST} characters", "Four words are easy to remember.")
        doc = {"password": self._hasher.hash(password)}
        self.home.records.put(ACCOUNT, self.home.owner, name, doc, expected=0)

    def enter(self, name: str, password: str) -> str:
        """A new session's secret, "" if name and password do not belong together.

        Raises:
            TooManyTries: too many were wrong in the last minute.
        """
        now = time.monotonic()
        if len(self._wrong) == TRIES and now - self._wrong[0] < WITHIN:
            raise TooManyTries("too many wrong passwords")
        record = self.home.records.get(ACCOUNT, self.home.owner, name) if _NAME.match(name) else None
        if not self._fits(str(record.doc["password"]) if record else "", password):
            self._wrong.append(now)
            return ""
        secret = secrets.token_urlsafe(32)
        doc = {"account": name, "until": time.time() + SESSION_SECONDS}
        self.home.records.put(SESSION, self.home.owner, _id(secret), doc)
        return secret

    def leave(self, secret: str) -> None:
        """End a session."""
        self.home.records.delete(SESSION, self.home.owner, _id(secret))

    def knows_session(self, secret: str) -> bool:
        """Whether a browser's cookie is that of a living session."""
        record = self.home.records.get(SESSION, self.home.owner, _id(secret)) if secret else None
        return bool(record) and float(record.doc["until"] if record else 0) > time.time()

    def knows_token(self, token: str) -> bool:
        """Whether a program's token is the one of the settings; compared in constant time."""
        own = self.home.settings.token
        return bool(own) and compare_digest(own.encode(), token.encode("utf-8", "replace"))

    def _fits(self, hashed: str, password: str) -> bool:
        """Nobody's password takes as long to check as somebody's."""
        try:
            return self._hasher.verify(hashed or self._hasher.hash(secrets.token_hex(8)), password) and bool(hashed)
        except (VerificationError, InvalidHashError, UnicodeEncodeError):
            return False


def _id(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
