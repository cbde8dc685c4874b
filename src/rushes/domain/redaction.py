"""Redaction: one function hides every form of secret in a text.

What a process has loaded as a secret is remembered, and hidden wherever it appears: a bug report is written when
nothing else is known. Passwords that are plain words are hidden only where the form tells what they are.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from urllib.parse import quote, unquote, urlsplit

HIDDEN = "***"
_WORDS = "password|passwd|passphrase|pwd|secret|token|credential|signature|cookie|(?:api|access|account)[_-]?key"
_NAMED = rf"(?=[\w.-]*?(?:{_WORDS}))[\w.-]++"  # reads a name twice at most, however it is made
_LAST_WORD = rf"(?:{_WORDS})(?:[_-]?key)?"
_IN_QUERY = rf"(?:{_NAMED}|key|sig|auth|code|pass|sslkey)"
_QUOTED = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\""
_KEY_EDGE = r"-----{} [\w ]{{0,40}}PRIVATE KEY-----"
_KEY_BEGIN, _KEY_END = _KEY_EDGE.format("BEGIN"), _KEY_EDGE.format("END")
# What is found, and what is shown instead. No form may read the same characters again from many places: text of
# strangers comes here, and a search that takes long stops the whole process.
_FORMS = (
    (rf"{_KEY_BEGIN}[\s\S]*?(?:{_KEY_END}|\Z)", HIDDEN),
    (r"(\bauthorization['\"]?\s*[:=]\s*['\"]?)(?:\w+\s+)?[^\s'\"]+", rf"\1{HIDDEN}"),
    (rf"(\bcookie['\"]?[ \t]*:[ \t]*)(?:{_QUOTED}|[^\r\n]+)", rf"\1{HIDDEN}"),
    (r"(\bbearer\s+)[\w.~+/=-]{8,}", rf"\1{HIDDEN}"),
    (r"(https?://)[^\s:@/]+@", rf"\1{HIDDEN}@"),  # a token in the place of the user
    (r"(https?://(?=[^\s/]*\bhooks?\b)[^\s/]*+/)\S+", rf"\1{HIDDEN}"),
    (rf"([?&;]{_IN_QUERY}=)\S+", rf"\1{HIDDEN}"),
    (rf"(['\"]{_NAMED}['\"]\s*:\s*)(?:{_QUOTED}|[^\s,}}]+)", rf"\1{HIDDEN}"),
    (rf"((?<![\w.-]){_NAMED}\s*=\s*)(?:{_QUOTED}|\S+)", rf"\1{HIDDEN}"),
    (rf"({_LAST_WORD}[ \t]*:[ \t]*)(?:{_QUOTED}|[^\s:'\"]\S*)", rf"\1{HIDDEN}"),
    (rf"((?<![\w.-])--[\w-]{{0,40}}{_LAST_WORD}['\"]?,?[ \t]+)(?:{_QUOTED}|[^\s'\"-]\S*)", rf"\1{HIDDEN}"),
)
_LOGIN = re.compile(r"://[^:@/]*:")
_HOST = re.compile(r"https?://[^/]+/", re.IGNORECASE)
_HOOK = re.compile(r"hooks?\b", re.IGNORECASE)
_USERINFO = re.compile(r"([a-z][a-z0-9+.-]*://[^\s:@/]*):(.*)@", re.IGNORECASE | re.DOTALL)
_VALUES = re.compile(rf"(?:^|[?&;\s])(?:{_IN_QUERY})\s*=\s*({_QUOTED}|[^\s&]+)", re.IGNORECASE)
_SECRET_NAME = re.compile(_NAMED, re.IGNORECASE)
_known: set[str] = set()


def redact(text: str) -> str:
    """A text as it may be seen: every secret that is known, or that its form gives away, is hidden."""
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    if "://" in text:
        text = re.sub(r"\S+", lambda word: _hide_in_address(word[0]), text)
    for form, shown in _forms():
        text = form.sub(shown, text)
    return text


def _hide_in_address(word: str) -> str:
    """A password ends at the last @ of its word, for it may have @ and / as well; the path of a hook is a secret."""
    before, at, after = word.rpartition("@")
    if login := _LOGIN.search(before):
        word = before[: login.end()] + HIDDEN + at + after
    host = _HOST.search(word)
    return word[: host.end()] + HIDDEN if host and _HOOK.search(word, host.end()) else word


def is_within_key(text: str) -> bool:
    """Whether a private key begins in this text and does not end in it."""
    last = list(re.finditer(rf"{_KEY_BEGIN}|{_KEY_END}", text))[-1:]
    return bool(last) and last[0][0].startswith("-----BEGIN")


@cache
def _forms() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Compiled when there is something to say: a command that works needs none."""
    return tuple((re.compile(form, re.IGNORECASE), shown) for form, shown in _FORMS)


def redact_address(value: str, *, secret_path: bool = False) -> str:
    """An address or a list of parameters as it may be seen; the path of a webhook is a secret as well."""
    if secret_path and value:
        parts = urlsplit(value)
        return f"{parts.scheme}://{parts.hostname}/{HIDDEN}" if parts.scheme and parts.hostname else HIDDEN
    return redact(_USERINFO.sub(rf"\1:{HIDDEN}@", value))


def has_raw_password(address: str) -> bool:
    """Whether a password has characters that must be encoded: each program would read such an address differently."""
    found = _USERINFO.match(address)
    return bool(found and re.search(r"[@/?#\s]", found[2]))


def remember_secrets(values: Iterable[str]) -> None:
    """Hide these from now on, wherever they appear, encoded or not."""
    for value in values:
        plain = unquote(value)
        _known.update(one for one in (value, plain, quote(plain, safe="")) if _is_telling(one))


def secrets_of(address: str, *, secret_path: bool = False) -> list[str]:
    """The secrets in an address or a list of parameters; of a webhook all that follows its host, and its user."""
    userinfo = _USERINFO.match(address)
    found = [userinfo[2]] if userinfo else []
    found += [re.sub(r"\\(.)", r"\1", value.strip("'\"")) for value in _VALUES.findall(address)]
    if secret_path:
        user, _, rest = address.partition("://")[2].rpartition("@")
        path = rest.partition("/")[2]
        found += [user, path, *re.split(r"[/?&=#]", path)]
    return [secret for secret in found if secret]


def secrets_in(environment: Mapping[str, str]) -> list[str]:
    """The values of variables that are called secrets."""
    return [value for name, value in environment.items() if _SECRET_NAME.fullmatch(name)]


def _is_telling(secret: str) -> bool:
    """Whether hiding it everywhere spoils no sentence: it is long, or no plain word."""
    return len(secret) >= 16 or (len(secret) >= 8 and not secret.isalpha())
