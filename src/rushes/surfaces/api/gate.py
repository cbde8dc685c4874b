"""The pages at the door: log in, log out, and the first account. Plain forms, no script."""

from html import escape
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from rushes.domain.errors import Refused
from rushes.records.port import Conflict
from rushes.surfaces.api.accounts import SESSION_SECONDS, TooManyTries
from rushes.surfaces.api.door import COOKIE, Door, cookie_of

router = APIRouter(include_in_schema=False)
Field = Annotated[str, Form(max_length=1000)]

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title} - rushes</title><link rel="stylesheet" href="/static/rushes.css"></head>
<body class="gate"><main><h1>{title}</h1><p role="status">{note}</p>
<form method="post" action="{action}">{fields}<button>{button}</button></form></main></body></html>"""
_NAME = '<p><label>Name <input name="name" autocomplete="username" required autofocus></label></p>'
_HIDDEN = '<p><label>Password <input name="password" type="password" autocomplete="{0}" required></label></p>'


@router.get("/login")
def show_login(next: Annotated[str, Query(max_length=500)] = "/") -> Response:
    """The form."""
    return _login(next, "")


@router.post("/login")
def log_in(request: Request, name: Field, password: Field, next: Field = "/") -> Response:
    """A session, if name and password belong together."""
    try:
        secret = _door(request).accounts.enter(name, password)
    except TooManyTries as e:
        return _login(next, f"{e}. {e.advice}", 429)
    return _entered(request, secret, next) if secret else _login(next, "That is not the name or the password.", 401)


@router.post("/logout")
def log_out(request: Request) -> Response:
    """End the session."""
    _door(request).accounts.leave(cookie_of(request.headers))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE)
    return answer


@router.get("/setup")
def show_setup(request: Request, code: Annotated[str, Query(max_length=100)] = "") -> Response:
    """The form for the first account."""
    return _setup(request, code, "")


@router.post("/setup")
def set_up(request: Request, name: Field, password: Field, code: Field = "") -> Response:
    """Make the first account; from then on everybody has to log in."""
    door = _door(request)
    if not _may_set_up(door, code):
        return _setup(request, "", "")
    try:
        door.accounts.create(name, password)
    except (Refused, Conflict) as e:
        return _setup(request, code, str(e), 400)
    door.setup_code = ""
    return _entered(request, door.accounts.enter(name, password), "/")


def _login(next: str, note: str, status: int = 200) -> Response:
    hidden = f'<input type="hidden" name="next" value="{escape(_local(next))}">'
    return _page("Log in", "/login", hidden + _NAME + _HIDDEN.format("current-password"), note, "Log in", status)


def _setup(request: Request, code: str, note: str, status: int = 200) -> Response:
    door = _door(request)
    if not _may_set_up(door, code):
        told = "There is an account already." if door.accounts.any else "The link with the code is in the terminal."
        return HTMLResponse(_PAGE.format(title="No", note=told, action="/login", fields="", button="Log in"), 403)
    hidden = f'<input type="hidden" name="code" value="{escape(code)}">'
    fields = hidden + _NAME + _HIDDEN.format("new-password")
    return _page("The first account", "/setup", fields, note or "At least ten characters.", "Make it", status)


def _may_set_up(door: Door, code: str) -> bool:
    return door.open or (bool(door.setup_code) and code == door.setup_code and not door.accounts.any)


def _page(title: str, action: str, fields: str, note: str, button: str, status: int) -> Response:
    html = _PAGE.format(title=title, action=action, fields=fields, note=escape(note), button=button)
    return HTMLResponse(html, status)


def _entered(request: Request, secret: str, next: str) -> Response:
    answer = RedirectResponse(_local(next), 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, secret, SESSION_SECONDS, httponly=True, samesite="lax", secure=secure)
    return answer


def _local(place: str) -> str:
    """A path of ours; whatever could lead elsewhere becomes the first page."""
    parts = urlsplit(place.replace("\\", "/"))
    ours = place.startswith("/") and not place.startswith(("//", "/\\")) and not parts.netloc and not parts.scheme
    return place if ours and place.isprintable() else "/"


def _door(request: Request) -> Door:
    door: Door = request.app.state.door
    return door
