"""The whole API as one application over one open library; it consumes no work."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.middleware.cors import CORSMiddleware

from rushes.home import VERSION
from rushes.library import Library
from rushes.library.idempotency import forget_requests
from rushes.surfaces.api import (
    aliases,
    artifacts,
    clips,
    events,
    fleet,
    jobs,
    media,
    paths,
    people,
    recipes,
    search,
    tasks,
    uploads,
    videos,
)
from rushes.surfaces.http import webhook
from rushes.surfaces.http.accounts import Accounts
from rushes.surfaces.http.event_hub import Hub
from rushes.surfaces.http.middleware import Door, Guard
from rushes.surfaces.http.openapi import Described, Heads
from rushes.surfaces.http.problems import answer_errors
from rushes.surfaces.web import login
from rushes.uploads.service import Uploads

API = "/api/v1"
TOLD = ("Location", "ETag", "Content-Range", "Retry-After", "Upload-Offset", "Upload-Length", "Tus-Resumable",
        "Tus-Version", "Tus-Extension", "Tus-Max-Size", "Rushes-Job", "Rushes-Parts")  # fmt: skip
RESOURCES = (videos, recipes, media.api, events, jobs, tasks, tasks.steps, artifacts, search, clips, people, paths,
             uploads, webhook, fleet)  # fmt: skip


def create(library: Library, bound: str = "127.0.0.1", setup_code: str = "") -> FastAPI:
    """The application.

    Raises:
        NotAllowed: it would be open to strangers.
    """
    door = Door(Accounts(library.home), bound, setup_code)
    door.check()
    app = Described(
        title="rushes",
        version=VERSION,
        summary="Develops footage overnight, whatever dies: watch it, search it, cut it.",
        docs_url=None,  # its page comes from a CDN
        redoc_url=None,
        lifespan=_living,
        generate_unique_id_function=_operation_id,
    )
    app.state.library, app.state.door, app.state.incarnation = library, door, secrets.token_hex(8)
    app.state.uploads = Uploads(library.home)
    app.state.hub = Hub(library.home.ledger, library.home.settings.owner)
    app.state.hooks = webhook.Hooks(library.home)
    answer_errors(app)
    _include(app)
    origins = [o.strip() for o in library.home.settings.cors.split(",") if o.strip()]
    if origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=TOLD
        )
    app.add_middleware(Heads)
    app.add_middleware(Guard, door=door)
    return app


def _include(app: FastAPI) -> None:
    for one in RESOURCES:
        app.include_router(one if isinstance(one, APIRouter) else one.router, prefix=API)
    for router in (fleet.health, media.router, login.router):
        app.include_router(router)
    app.include_router(aliases.beside)
    if find_spec("rushes.surfaces.web"):
        pages = import_module("rushes.surfaces.web.pages")
        app.router.routes.extend(pages.routes)
        pages.dress(app)
    app.include_router(aliases.router)  # last: a page of the same name goes first


@asynccontextmanager
async def _living(app: FastAPI) -> AsyncIterator[None]:
    """While it lives it follows the ledger; what had arrived when the last process died is told now."""
    await asyncio.to_thread(app.state.uploads.finish_all)
    await asyncio.to_thread(app.state.uploads.expire)
    await asyncio.to_thread(forget_requests, app.state.library.home)
    app.state.hub.start(asyncio.get_running_loop())
    app.state.hooks.start()
    try:
        yield
    finally:
        await asyncio.to_thread(app.state.hooks.stop)
        await asyncio.to_thread(app.state.hub.stop)


def _operation_id(route: APIRoute) -> str:
    return route.name
