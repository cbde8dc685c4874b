"""Accounts with a password (argon2), sessions of browsers, the API token; stored as hashes."""

import hashlib
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from hmac import compare_digest
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from rushes.domain.errors import NotAllowed, NotFound, Refused
from rushes.domain.keys import JSON
from rushes.home import Home
from rushes.library.access.audit import Audit
from rushes.library.access.throttle import MOST, Throttle, TooManyTries, network
from rushes.records.port import Conflict, Record
from rushes.settings import Settings

__all__ = ["LEAST", "SESSION_SECONDS", "Account", "Accounts", "Caller", "Session", "Settings", "TooManyTries"]
ACCOUNT, SESSION, SETUP = "account", "session", "setup"
SESSION_SECONDS = 30 * 86400
LEAST = 10  # characters of a password
HASHES, WAITING = 2, 8  # at once, 64 MB each; and logins that wait for one
TOKEN, LOCAL, STORAGE = "token", "local", "storage"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}\Z", re.ASCII)
_RESERVED = (TOKEN, LOCAL, STORAGE)  # who came in without an account


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request, and from where."""

    name: str
    admin: bool
    address: str


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody who may log in; an admin may also drain workers and read the audit log."""

    name: str
    admin: bool
    created_at: str
    sessions: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is logged in; its id is the hash of its secret."""

    id: str
    account: str
    address: str
    since: str
    until: str


@dataclass
class Accounts:
    """The accounts of a home."""

    home: Home
    tries: Throttle = field(default_factory=Throttle)
    token_tries: Throttle = field(default_factory=Throttle)
    _hasher: PasswordHasher = field(default_factory=PasswordHasher)
    _hashing: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(HASHES))
    _queue: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(HASHES + WAITING))
    _some: bool = False  # once there is one, it is not asked again
    _wrong_tokens: OrderedDict[str, str] = field(default_factory=OrderedDict)

    @cached_property
    def audit(self) -> Audit:
        """Where logins are written down."""
        return Audit(self.home)

    @property
    def any(self) -> bool:
        """Whether there is a token or an account at all."""
        if not self._some:
            self._some = bool(self.home.settings.token) or self._has_accounts()
        return self._some

    def all(self) -> list[Account]:
        """Every account, by name."""
        sessions = [s.account for s in self.sessions()]
        return [_account(r, sessions.count(r.id)) for r in self.home.all_records(ACCOUNT)]

    def create(self, name: str, password: str, *, admin: bool = False) -> Account:
        """A new account; the first one is always an admin.

        Raises:
            Refused: the name or the password will not do, or there is one of that name.
        """
        return self._put(name, self._doc(name, password, admin=admin or not self._has_accounts()))

    def set_up(self, name: str, password: str) -> Account:
        """The first account of all; however many ask at once, exactly one gets it.

        Raises:
            NotAllowed: there is one.
            Refused: the name or the password will not do.
        """
        doc, taken = self._doc(name, password, admin=True), self._has_accounts()
        try:
            self.home.records.put(SETUP, self.home.owner, "first", {"account": name}, expected=0)
        except Conflict:
            taken = True
        if taken:
            raise NotAllowed("an account already exists", "Log in, or use the terminal: rushes users")
        return self._put(name, doc)

    def change_password(self, name: str, password: str) -> None:
        """A new password; every session of the account is over.

        Raises:
            NotFound: there is no such account.
            Refused: the password will not do.
        """
        record = self._get(name)
        doc = {**record.doc, "password": self._hash(password)}
        self.home.records.put(ACCOUNT, self.home.owner, name, doc, expected=record.version)
        self.end_sessions(name)

    def remove(self, name: str) -> None:
        """Delete an account and end its sessions; without any account the first one can be set up again.

        Raises:
            NotFound: there is no such account.
        """
        self.home.records.delete(ACCOUNT, self.home.owner, self._get(name).id)
        self.end_sessions(name)
        if not self._has_accounts():
            self.home.records.delete(SETUP, self.home.owner, "first")

    def enter(self, name: str, password: str, address: str) -> str:
        """A new session's secret, "" if name and password do not belong together.

        Raises:
            TooManyTries: this address was wrong too often, or too many log in at once.
        """
        self.tries.admit(address, name)
        record = self.home.records.get(ACCOUNT, self.home.owner, name) if _NAME.match(name) else None
        try:
            fits = self._fits(str(record.doc["password"]) if record else "", password)
        except TooManyTries:
            self.tries.forgive(address, name)
            raise
        if not record or not fits:
            self.audit.write_failure(name if record else "unknown", address)  # a password may stand in the wrong field
            return ""
        self.tries.forgive(address, name)
        self.audit.write("login", name, address)
        return self._begin(record, address)

    def leave(self, secret: str) -> None:
        """End a session."""
        self.home.records.delete(SESSION, self.home.owner, _id(secret))

    def sessions(self, name: str = "") -> Iterator[Session]:
        """The living sessions, of one account or all."""
        versions = {r.id: r.version for r in self.home.all_records(ACCOUNT)}
        for record in self.home.all_records(SESSION):
            if name in ("", record.doc["account"]) and _is_alive(record, versions.get(str(record.doc["account"]), 0)):
                yield _session(record)

    def end_sessions(self, name: str = "") -> int:
        """Log out an account, or with "" everybody whose session is over anyway; answers how many."""
        living = {session.id for session in self.sessions()}
        old = [r for r in self.home.all_records(SESSION) if r.doc["account"] == name or r.id not in living]
        for record in old:
            self.home.records.delete(SESSION, self.home.owner, record.id)
        return sum(record.id in living for record in old)

    def session_caller(self, secret: str, address: str) -> Caller | None:
        """Who a browser's cookie belongs to; None if the session is over, or the account changed since."""
        session = self.home.records.get(SESSION, self.home.owner, _id(secret)) if secret else None
        account = self.home.records.get(ACCOUNT, self.home.owner, str(session.doc["account"])) if session else None
        if not session or not account or not _is_alive(session, account.version):
            return None
        return Caller(account.id, bool(account.doc["admin"]), address)

    def token_caller(self, token: str, address: str) -> Caller | None:
        """Who a program's token belongs to, compared in constant time.

        Raises:
            TooManyTries: this address guessed too often.
        """
        own, digest = self.home.settings.token, _id(token)
        if not own or self._wrong_tokens.get(network(address)) == digest:
            return None  # the same wrong token again is a program with an old setting, and no guess
        self.token_tries.check(address)
        if compare_digest(own.encode(), token.encode("utf-8", "replace")):
            return Caller(TOKEN, admin=True, address=address)
        self.token_tries.count(address)
        self._wrong_tokens[network(address)] = digest
        while len(self._wrong_tokens) > MOST:
            self._wrong_tokens.popitem(last=False)
        self.audit.write_failure(TOKEN, address)
        return None

    def _has_accounts(self) -> bool:
        return bool(self.home.records.list(ACCOUNT, self.home.owner, limit=1)[0])

    def _doc(self, name: str, password: str, *, admin: bool) -> dict[str, JSON]:
        if not _NAME.match(name) or name in _RESERVED:
            raise Refused("a name must have 1 to 40 characters: a-z, 0-9, dot, dash", "For example: ada")
        return {"password": self._hash(password), "admin": admin, "at": _iso(time.time())}

    def _put(self, name: str, doc: Mapping[str, JSON]) -> Account:
        try:
            return _account(self.home.records.put(ACCOUNT, self.home.owner, name, doc, expected=0))
        except Conflict as e:
            raise Refused(f"the account {name!r} already exists", f"Run: rushes users password {name}") from e

    def _begin(self, account: Record, address: str) -> str:
        secret, now = secrets.token_urlsafe(32), time.time()
        doc = {"account": account.id, "version": account.version, "address": address, "at": now}
        self.home.records.put(SESSION, self.home.owner, _id(secret), doc | {"until": now + SESSION_SECONDS})
        return secret

    def _get(self, name: str) -> Record:
        record = self.home.records.get(ACCOUNT, self.home.owner, name)
        if record is None:
            raise NotFound(f"no account {name[:40]!r}", "List them: rushes users ls")
        return record

    def _hash(self, password: str) -> str:
        check_password(password)
        with self._turn():
            return self._hasher.hash(password)

    def _fits(self, hashed: str, password: str) -> bool:
        """Nobody's password takes as long to check as somebody's: one hash."""
        with self._turn(), suppress(VerificationError, InvalidHashError, UnicodeEncodeError):
            nobody = self._nobody
            return self._hasher.verify(hashed or nobody, password) and bool(hashed)
        return False

    @cached_property
    def _nobody(self) -> str:
        return self._hasher.hash(secrets.token_hex(16))

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One of few hashes at once; the queue for them is short."""
        if not self._queue.acquire(blocking=False):
            raise TooManyTries("too many logins at the same time", 2)
        try:
            with self._hashing:
                yield
        finally:
            self._queue.release()


def check_password(password: str) -> None:
    """Raises Refused: it is too short, too long, or no text."""
    if not LEAST <= len(password) <= 1000 or not password.isprintable():
        raise Refused(f"a password needs at least {LEAST} characters", "Four words are easy to remember.")


def _is_alive(session: Record, version: int) -> bool:
    """A session ends by time, and with the account or password that it was begun with."""
    return float(session.doc["until"]) > time.time() and session.doc.get("version") == version


def _account(record: Record, sessions: int = 0) -> Account:
    return Account(record.id, bool(record.doc["admin"]), str(record.doc["at"]), sessions)


def _session(record: Record) -> Session:
    since, until = (_iso(float(record.doc[name])) for name in ("at", "until"))
    return Session(record.id, str(record.doc["account"]), str(record.doc["address"]), since, until)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _id(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
