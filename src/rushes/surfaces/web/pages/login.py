"""Log in, log out, and the first account. Plain forms, no script."""

import secrets
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from rushes.domain.errors import NotAllowed, Refused
from rushes.library.access.accounts import LEAST, SESSION_SECONDS, TooManyTries
from rushes.surfaces.http.access import AccessPolicy
from rushes.surfaces.http.cookies import SESSION, cookie_of, drop_cookie, set_cookie
from rushes.surfaces.web.view import render

router = APIRouter(include_in_schema=False)
Field = Annotated[str, Form(max_length=1000)]
NO_CODE = "Open the link that rushes serve --setup prints, or use the terminal: rushes users add NAME"


@router.get("/login")
def show_login(request: Request, next: Annotated[str, Query(max_length=500)] = "/") -> Response:
    """The form."""
    return _login(request, next, "")


@router.post("/login")
def log_in(request: Request, name: Field, password: Field, next: Field = "/") -> Response:
    """A session, if name and password belong together."""
    try:
        secret = _access(request).accounts.enter(name, password, _address(request))
    except TooManyTries as e:
        return _with_pause(_login(request, next, _sentence(e), 429), e)
    if not secret:
        return _login(request, next, "Wrong name or password.", 401)
    return _entered(request, secret, next)


@router.post("/logout")
def log_out(request: Request) -> Response:
    """End the session."""
    _access(request).accounts.leave(cookie_of(request.scope, SESSION))
    answer = RedirectResponse("/login", 303)
    drop_cookie(request, answer, SESSION)
    return answer


@router.get("/setup")
def show_setup(request: Request, code: Annotated[str, Query(max_length=100)] = "") -> Response:
    """The form for the first account."""
    return _setup(request, code, "")


@router.post("/setup")
def set_up(request: Request, name: Field, password: Field, code: Field = "") -> Response:
    """Make the first account, with the code from the terminal; from then on everybody has to log in."""
    access, address = _access(request), _address(request)
    try:
        if not _may_set_up(access, code):
            access.accounts.tries.admit(address)
            return _setup(request, "", "")
        access.accounts.set_up(name, password)
        access.setup_code = ""
        access.accounts.audit.write("account added", name, address, f"{name}, the first one")
        return _entered(request, access.accounts.enter(name, password, address), "/")
    except TooManyTries as e:
        return _with_pause(_setup(request, code, _sentence(e), 429), e)
    except NotAllowed as e:
        return _page(request, "Not possible", "Log in", _sentence(e), 403)
    except Refused as e:
        return _setup(request, code, str(e), 400)


def _login(request: Request, next: str, note: str, status: int = 200) -> Response:
    return _page(request, "Log in", "Log in", note, status, fields="current-password", hidden={"next": _local(next)})


def _setup(request: Request, code: str, note: str, status: int = 200) -> Response:
    access = _access(request)
    if not _may_set_up(access, code):
        told = "An account already exists." if access.accounts.any else NO_CODE
        return _page(request, "Not possible", "Log in", told, 403)
    more = {"hidden": {"code": code}, "hint": f"At least {LEAST} characters; four words are easy to remember."}
    title, button = "Create the first account", "Create account"
    return _page(request, title, button, note, status, action="/setup", fields="new-password", **more)


def _may_set_up(access: AccessPolicy, code: str) -> bool:
    same = secrets.compare_digest(code.encode(errors="replace"), access.setup_code.encode())
    return bool(access.setup_code) and same and not access.accounts.any


def _page(request: Request, title: str, button: str, note: str, status: int, **more: Any) -> Response:
    """`fields` says which password is asked for, "" for none."""
    form = {"action": "/login", "fields": "", "hidden": {}, "hint": ""} | more
    return render(request, "login.html", status, title=title, button=button, note=note, wrong=status >= 400, **form)


def _entered(request: Request, secret: str, next: str) -> Response:
    answer = RedirectResponse(_local(next), 303)
    set_cookie(request, answer, SESSION, secret, SESSION_SECONDS)
    return answer


def _with_pause(answer: Response, error: TooManyTries) -> Response:
    answer.headers["Retry-After"] = str(error.retry_after)
    return answer


def _sentence(error: Refused) -> str:
    said = str(error)
    return f"{said[0].upper()}{said[1:]}. {error.advice}"


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _local(place: str) -> str:
    """A path of ours; whatever could lead elsewhere becomes the first page."""
    parts = urlsplit(place.replace("\\", "/"))
    ours = place.startswith("/") and not place.startswith(("//", "/\\")) and not parts.netloc and not parts.scheme
    return place if ours and place.isprintable() else "/"


def _access(request: Request) -> AccessPolicy:
    access: AccessPolicy = request.app.state.access
    return access
