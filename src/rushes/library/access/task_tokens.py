"""Task tokens: signed leases for workers of custom queues. Stateless: any server can check any token.

A token is base64url of a document and its HMAC-SHA256. What it says counts only with the ledger: the fence decides.
"""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Self

from rushes.domain.errors import ExpiredToken, ForeignToken, ForgedToken
from rushes.domain.keys import canonical
from rushes.home import Home
from rushes.records.port import Conflict, Record

SECRET, TOKENS = "secret", "task_tokens"  # the kind of record, and the one for task tokens
KEYS = 2  # that are accepted: the newest signs
LONGEST = 4096  # characters; ours have about 400
_MAC = hashlib.sha256().digest_size
_FORGED = "this task token was not signed by this server"


@dataclass(frozen=True, slots=True)
class TaskToken:
    """The right to report on one attempt: whose job it is, its queue, who holds the lease, its fence, until when."""

    owner: str
    job: str
    task: str
    queue: str
    receipt: str  # the worker's row in the ledger
    fence: int
    expires: int  # seconds since 1970
    trace: str = ""  # the W3C context of the job


@dataclass(frozen=True, slots=True)
class TokenKey:
    """A key that signs, and the id by which a token names it."""

    id: str
    key: bytes

    @classmethod
    def new(cls) -> Self:
        """A random one."""
        return cls(secrets.token_hex(4), secrets.token_bytes(32))

    def mac(self, body: bytes) -> bytes:
        """The signature of a document."""
        return hmac.digest(self.key, b"rushes task token\0" + body, hashlib.sha256)


@dataclass(frozen=True, slots=True)
class TokenSigner:
    """Signs with its first key and accepts all of them."""

    keys: Sequence[TokenKey]
    clock: Callable[[], float] = time.time

    def sign(self, token: TaskToken) -> str:
        """The text that a worker carries."""
        key = self.keys[0]
        body = canonical({**asdict(token), "key": key.id})
        return _encode(body + key.mac(body))

    def read(self, text: str, owner: str, queue: str = "", job: str = "") -> TaskToken:
        """What a token says, once it is known to be ours.

        Raises:
            ForgedToken: it was not signed by one of the keys, or was changed since.
            ExpiredToken: its time is over.
            ForeignToken: it is about another owner's job, or another queue or job than was asked about.
        """
        body, mac = _split(text)
        made = [hmac.compare_digest(mac, key.mac(body)) for key in self.keys]  # all of them, so that time tells nothing
        if not any(made):
            raise ForgedToken(_FORGED)
        doc = json.loads(body)
        if doc.pop("key") != self.keys[made.index(True)].id:
            raise ForgedToken(_FORGED)
        token = TaskToken(**doc)
        if token.expires <= self.clock():
            raise ExpiredToken(f"the task token of {token.task} has expired")
        if token.owner != owner or queue not in ("", token.queue) or job not in ("", token.job):
            raise ForeignToken("this task token belongs to another job")
        return token


def trace_in(text: str) -> str:
    """The W3C context that a token carries, "" if none; whoever can forge it can send any context as well."""
    try:
        return str(json.loads(_split(text)[0]).get("trace", ""))
    except (ForgedToken, ValueError, AttributeError):
        return ""


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _split(text: str) -> tuple[bytes, bytes]:
    """Document and signature; only in the form in which we write them: another spelling is a forgery."""
    if not isinstance(text, str) or not text.isascii() or len(text) > LONGEST:
        raise ForgedToken(_FORGED)
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as e:
        raise ForgedToken(_FORGED) from e
    if len(data) <= _MAC or _encode(data) != text:
        raise ForgedToken(_FORGED)
    return data[:-_MAC], data[-_MAC:]


class TokenKeys:
    """The keys of a home, in its records: every server has the same."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def signer(self) -> TokenSigner:
        """Signs and reads with the keys as they are now; the first server makes one."""
        return TokenSigner(_keys_of(self._record() or self._put((TokenKey.new(),), 0)))

    def rotate(self) -> str:
        """A new key signs; the one before is still accepted, older ones are not. Answers the id of the new one."""
        record = self._record()
        keys = (TokenKey.new(), *(_keys_of(record) if record else ()))[:KEYS]
        self._put(keys, record.version if record else 0)
        return keys[0].id

    def _record(self) -> Record | None:
        return self._home.records.get(SECRET, self._home.owner, TOKENS)

    def _put(self, keys: Sequence[TokenKey], expected: int) -> Record:
        doc = {"keys": [{"id": key.id, "key": key.key.hex()} for key in keys]}
        try:
            return self._home.records.put(SECRET, self._home.owner, TOKENS, doc, expected=expected)
        except Conflict:  # of two that do so at once one wins
            record = self._record()
            assert record
            return record


def _keys_of(record: Record) -> tuple[TokenKey, ...]:
    return tuple(TokenKey(str(key["id"]), bytes.fromhex(str(key["key"]))) for key in record.doc["keys"])
