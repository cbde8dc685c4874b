"""Log in, log out, and the first account. Plain forms, no script."""

import secrets
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from rushes.domain.errors import Refused
from rushes.library.accounts import LEAST, SESSION_SECONDS, TooManyTries
from rushes.library.idempotency import Conflict
from rushes.surfaces.http.middleware import COOKIE, AccessPolicy, cookie_of
from rushes.surfaces.web.view import render

router = APIRouter(include_in_schema=False)
Field = Annotated[str, Form(max_length=1000)]


@router.get("/login")
def show_login(request: Request, next: Annotated[str, Query(max_length=500)] = "/") -> Response:
    """The form."""
    return _login(request, next, "")


@router.post("/login")
def log_in(request: Request, name: Field, password: Field, next: Field = "/") -> Response:
    """A session, if name and password belong together."""
    try:
        secret = _access(request).accounts.enter(name, password)
    except TooManyTries as e:
        return _login(request, next, f"{e}. {e.advice}", 429)
    if not secret:
        return _login(request, next, "Wrong name or password.", 401)
    return _entered(request, secret, next)


@router.post("/logout")
def log_out(request: Request) -> Response:
    """End the session."""
    _access(request).accounts.leave(cookie_of(request.headers))
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
    access = _access(request)
    if not _may_set_up(access, code):
        return _setup(request, "", "")
    try:
        access.accounts.create(name, password)
    except (Refused, Conflict) as e:
        return _setup(request, code, str(e), 400)
    access.setup_code = ""
    return _entered(request, access.accounts.enter(name, password), "/")


def _login(request: Request, next: str, note: str, status: int = 200) -> Response:
    return _page(request, "Log in", "Log in", note, status, fields="current-password", hidden={"next": _local(next)})


def _setup(request: Request, code: str, note: str, status: int = 200) -> Response:
    access = _access(request)
    if not _may_set_up(access, code):
        told = "An account already exists." if access.accounts.any else "Open the link that the terminal shows."
        return _page(request, "Not possible", "Log in", told, 403)
    more = {"hidden": {"code": code}, "hint": f"At least {LEAST} characters; four words are easy to remember."}
    title, button = "Create the first account", "Create account"
    return _page(request, title, button, note, status, action="/setup", fields="new-password", **more)


def _may_set_up(access: AccessPolicy, code: str) -> bool:
    same = secrets.compare_digest(code.encode(errors="replace"), access.setup_code.encode())
    return access.open or (bool(access.setup_code) and same and not access.accounts.any)


def _page(request: Request, title: str, button: str, note: str, status: int, **more: Any) -> Response:
    """`fields` says which password is asked for, "" for none."""
    form = {"action": "/login", "fields": "", "hidden": {}, "hint": ""} | more
    return render(request, "gate.html", status, title=title, button=button, note=note, wrong=status >= 400, **form)


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


def _access(request: Request) -> AccessPolicy:
    access: AccessPolicy = request.app.state.access
    return access
