"""Secrets are never shown, whatever their form and wherever the text goes."""

import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rushes.domain import redaction
from rushes.domain.errors import Refused, StoreAway
from rushes.domain.redaction import has_raw_password, redact, remember_secrets, secrets_in
from rushes.domain.task import Lease
from rushes.settings import Settings, list_settings, load, secrets_of_settings, shown
from rushes.surfaces.cli import errors
from rushes.surfaces.cli.session import Session
from rushes.telemetry import JsonLines
from rushes.wiring import stores_of
from rushes.worker.child_output import ChildOutput

ODD = "@/:?#&=%+;,!$*()[]'~.-_ "
# A beginning that nothing else has, so that what is found is the secret; then whatever a password may have.
SECRETS = st.text(st.characters(codec="utf-8", categories=["L", "N"]) | st.sampled_from(ODD), min_size=5, max_size=30)
secret = SECRETS.map(lambda text: f"Zq7{text.strip()}xW9").filter(lambda text: "***" not in text)


def encoded(text: str) -> str:
    return quote(text, safe="")


# Each form: the setting that has it, and how it is written; in text, a secret with a space ends at the space.
FORMS: dict[str, tuple[str, Callable[[str], str]]] = {
    "a secret": ("s3_secret", str),
    "a token": ("token", str),
    "a password": ("store", lambda s: f"postgres://rushes:{encoded(s)}@db:5432/films"),
    "a raw password": ("store", lambda s: f"postgresql://rushes:{s}@db:5432/films"),
    "no user": ("hints", lambda s: f"rediss://:{encoded(s)}@cache:6379/0"),
    "a raw password without a user": ("hints", lambda s: f"valkey://:{s}@cache:6379"),
    "a query": ("store", lambda s: f"postgres://db/films?user=me&password={encoded(s)}&sslmode=require"),
    "the password of a key": ("listen", lambda s: f"postgres://db/films?sslpassword={encoded(s)}"),
    "parameters": ("store", lambda s: f"host=db user=me password={encoded(s)} dbname=films"),
    "quoted parameters": ("store", lambda s: "host=db password='{}'".format(s.replace("'", "\\'"))),
    "an endpoint": ("s3_endpoint", lambda s: f"https://key:{encoded(s)}@s3.example.org"),
    "a queue": ("storage_events", lambda s: f"https://sqs.example.org/films?X-Amz-Security-Token={encoded(s)}"),
    "a webhook": ("webhook", lambda s: f"https://example.org/in/{encoded(s)}"),
    "a hook of a chat": ("webhook", lambda s: f"https://hooks.slack.com/services/T0/B0/{encoded(s)}"),
    "the query of a webhook": ("webhook", lambda s: f"https://example.org/?id={encoded(s)}"),
    "the user of a webhook": ("webhook", lambda s: f"https://{encoded(s)}@example.org/in"),
}
forms = pytest.mark.parametrize("form", FORMS)


def settings_with(form: str, secret: str) -> Settings:
    name, write = FORMS[form]
    return Settings(**{name: write(secret)})  # type: ignore[arg-type]


def assert_hidden(secret: str, *texts: object) -> None:
    for text in texts:
        for written in {
            secret,
            encoded(secret),
            secret.replace("'", "\\'"),
            json.dumps(secret)[1:-1],
            repr(secret)[1:-1],
        }:
            assert written not in str(text), (written, text)
        assert "Zq7" not in str(text), "nor its beginning"
        assert "xW9" not in str(text), "nor its end"


@pytest.fixture
def _forgetful() -> Iterator[None]:
    """What a test made known is forgotten."""
    before = set(redaction._known)
    yield
    redaction._known.clear()
    redaction._known.update(before)


@forms
@given(secret=secret)
@example(secret="Zq7p@ss/w0rd?&#=xW9")
@example(secret="Zq7with a space@xW9")
def test_settings_are_shown_without_their_secrets(form: str, secret: str) -> None:
    settings = settings_with(form, secret)
    name = FORMS[form][0]
    assert shown(settings, name)
    assert_hidden(secret, shown(settings, name), repr(settings), settings)


@pytest.mark.usefixtures("_forgetful")
@forms
def test_no_text_that_leaves_the_program_has_a_secret_of_its_settings(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "Zq7p@ss/w0rd?&# ='xW9"
    name, write = FORMS[form]
    loaded = load(tmp_path, {f"RUSHES_{name.upper()}": write(secret)})
    inside = [f"it failed: {write(secret)}", f"URL can't contain {secret!r}", f"{encoded(secret)} {secret}"]
    for text in inside:
        known = StoreAway(text, text)
        record = logging.LogRecord("rushes", 30, "", 1, "%s", (text,), (ValueError, ValueError(text), None))
        output = ChildOutput()
        output.begin(Lease("job.stage", 1, "job", "stage", None, "cpu", "{}", 0, 0))
        output.add(text.encode())
        for session in (Session(json=True, verbose=True), Session(verbose=True), Session()):
            errors.report_known(session, known)
            errors.report_bug(session, RuntimeError(text), tmp_path)
        assert_hidden(secret, known, known.advice, JsonLines().format(record), output.last(), redact(text))
    assert_hidden(secret, *list_settings(loaded), *capsys.readouterr())
    assert_hidden(secret, *(file.read_text() for file in tmp_path.glob("bug-*")))
    assert list(tmp_path.glob("bug-*"))


@given(secret=secret.filter(lambda text: not re.search(r"\s", text)))
def test_the_form_of_a_text_gives_a_secret_away(secret: str) -> None:
    """Also one that this process has never loaded, such as that of another program's error."""
    for name, write in FORMS.values():
        if name not in ("s3_secret", "token", "webhook"):
            assert_hidden(secret, redact(f"no answer from {write(secret)}"))
    assert_hidden(secret, redact(f"AWS_SECRET_ACCESS_KEY={encoded(secret)} PGPASSWORD={encoded(secret)}"))
    assert_hidden(secret, redact(f"Authorization: Bearer {encoded(secret)}"), redact(f"https://hooks.x.org/{secret}"))
    assert_hidden(secret, redact(str({"password": secret, "a": 1})), redact(json.dumps({"api_key": secret})))


@pytest.mark.parametrize(
    "text",
    [
        "password: Zq7hunter22xW9",
        "X-Api-Key: Zq7abcdef123xW9",
        "secret_key:Zq7abcxW9",
        "psql --password Zq7x-xW9 films",
        "run ['psql', '--db-password', 'Zq7 x xW9']",
        "Cookie: session=Zq7abc; other=xW9",
        "{'Set-Cookie': 'a=Zq7; b=xW9', 'Host': 'x'}",
        "https://example.org/in/webhooks/Zq7/xW9",
        "https://hooks.example.org/Zq7/xW9",
    ],
)
def test_a_secret_is_hidden_in_headers_options_and_plain_lists(text: str) -> None:
    assert_hidden("Zq7", redact(text))
    assert "***" in redact(text)


HOSTILE = [
    "token.", "a.", "token", "token ", "token:", "token: ", "token='", 'token="\\', "'token", "'token' ", "--token",
    "--token ", "--a", "://:", "a://b:", "https://a/", "https://hook.", "hook.", "https://", "@", "://a:b@", "?token",
    "&key=", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----END ", "authorization: ", "authorization: a",
    "bearer ", "cookie", "cookie: ", "cookie:'", "api_", " ", "=", ":", "'", "\\'", "\n", "token\n", "-",
]  # fmt: skip


def test_a_hostile_text_is_read_in_a_time_that_grows_no_faster_than_it_does() -> None:
    """Each would take minutes or hours where the same characters are read again from many places."""
    program = """
import sys
from rushes.domain.redaction import is_within_key, redact
for piece in sys.argv[1:]:
    for before in ("", "hook", "https://hook.", "token", "authorization:", "'token'", "-----BEGIN PRIVATE KEY-----"):
        text = before + piece * (20_000 // len(piece))
        redact(text), is_within_key(text)
redact("token." * 33_000)
"""
    subprocess.run([sys.executable, "-c", program, *HOSTILE], check=True, timeout=20)


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/a@b.mp4 has no transcript yet. Run: rushes run film.mp4",
        "rushes.toml: unknown setting 'tokens'",
        "connection to server at 127.0.0.1, port 5432 failed: password authentication failed for user rushes",
        "postgres://rushes@db:5432/films?sslmode=require",
        "the token is missing",
        "NoCredentialsError: Unable to locate credentials",
        "std::token::next",
        "tokens: 512",
        "the server refuses the credentials: WRONGPASS invalid username-password pair",
        "rushes serve --token-file tokens.txt --verbose",
        "http://127.0.0.1:8000/videos?q=secret&sort=key",
    ],
)
def test_what_is_no_secret_is_shown(text: str) -> None:
    assert redact(text) == text


@pytest.mark.usefixtures("_forgetful")
def test_a_password_that_is_a_word_spoils_no_sentence() -> None:
    remember_secrets(["rushes", "postgres", "films123"])
    assert redact("rushes run films123, postgres") == "rushes run ***, postgres"


def test_secrets_of_the_environment_are_found_by_their_names() -> None:
    env = {"AWS_SECRET_ACCESS_KEY": "a", "HF_TOKEN": "b", "PGPASSWORD": "c", "PATH": "d", "KEYBOARD": "e"}
    assert secrets_in(env) == ["a", "b", "c"]


@pytest.mark.parametrize("form", ["a raw password", "a raw password without a user"])
def test_an_address_that_can_be_read_in_two_ways_is_refused(form: str, tmp_path: Path) -> None:
    """Otherwise a part of the password is taken for a host, asked for over the network, and told in an error."""
    for odd in "@/?# ":
        settings = settings_with(form, f"Zq7{odd}word:xW9")
        with pytest.raises(Refused, match="must be encoded") as refused:
            stores_of(settings, tmp_path)
        assert_hidden("Zq7", refused.value, refused.value.advice)
    assert not has_raw_password("postgres://rushes:p%40ss@db/films")
    assert not has_raw_password("redis://cache:6379")
    assert not has_raw_password("")


def test_every_secret_among_the_settings_is_found() -> None:
    settings = Settings(token="t", s3_secret="s", store="postgres://u:p%40w@h/d", webhook="https://x/in/abc?k=v")
    assert set(secrets_of_settings(settings)) >= {"t", "s", "p%40w", "in/abc?k=v"}
