"""Settings and health: where each value came from, whether every part answers, and what is on this machine."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from rushes.home import VERSION
from rushes.library.doctor import Check
from rushes.surfaces.api.fleet import list_settings, parts_of
from rushes.surfaces.http.deps import ALibrary
from rushes.surfaces.web.view import render

router = APIRouter(include_in_schema=False)


@router.get("/settings")
def show_settings(request: Request, library: ALibrary, check: Annotated[bool, Query()] = False) -> Response:
    """The page; `check` lets the doctor look at everything, which takes a moment."""
    door, home = request.app.state.door, library.home
    return render(
        request,
        "settings.html",
        parts_ready=parts_of(home),
        checks=library.doctor() if check else (),
        settings=sorted(list_settings(home), key=lambda s: s.origin == "default"),
        models=library.models.ls(),
        home=home.folder,
        version=VERSION,
        owner=home.settings.owner,
        open=door.open,
        token=bool(home.settings.token),
        well=_well,
    )


def _well(checks: tuple[Check, ...]) -> bool:
    return all(check.ok for check in checks)
