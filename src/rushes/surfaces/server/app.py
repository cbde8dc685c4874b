"""API and pages as one application over one open library; it processes no videos itself."""

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from rushes.domain.errors import RushesError, WrongHome
from rushes.library import Library, version
from rushes.library.access.accounts import Accounts
from rushes.library.access.signing import Signer
from rushes.library.idempotency import forget_requests
from rushes.library.watching.event_listener import open_listener
from rushes.library.watching.path_watcher import PathWatcher
from rushes.library.webhook import Webhook
from rushes.library.work.fleet_figures import FleetWatch
from rushes.otlp.figures import sending_figures
from rushes.surfaces.api import (
    artifacts,
    clips,
    documents,
    events,
    fleet,
    jobs,
    media,
    metrics,
    output,
    people,
    queues,
    search,
    storage_events,
    uploads,
    videos,
)
from rushes.surfaces.http import swagger
from rushes.surfaces.http.access import AccessPolicy
from rushes.surfaces.http.event_hub import EventHub
from rushes.surfaces.http.live_jobs import LiveJobs
from rushes.surfaces.http.middleware import AccessMiddleware
from rushes.surfaces.http.openapi import DescribedApp, HeadMiddleware
from rushes.surfaces.http.problems import answer_errors
from rushes.surfaces.http.schemas import JobShape
from rushes.surfaces.mcp.endpoint import McpEndpoint, serve_mcp
from rushes.surfaces.web import mount
from rushes.surfaces.web.pages.library import IndexCounts
from rushes.surfaces.words import ActiveJobs
from rushes.telemetry import Outage

API = "/api/v1"
LOOK_SECONDS, OLD_LOOKS = 2.0, 30  # between looks for files in the bucket, and how many to one for old promises
SCHEMA_SECONDS = 60.0  # between looks whether a newer rushes has changed the store
TOLD = ("Location", "ETag", "Content-Range", "Retry-After", "Upload-Offset", "Upload-Length", "Tus-Resumable",
        "Tus-Version", "Tus-Extension", "Tus-Max-Size", "Rushes-Job", "Rushes-Parts")  # fmt: skip
RESOURCES = (videos.router, videos.recipes, media.api, events.router, output.router, jobs.router, jobs.tasks,
             jobs.steps, queues.router,
             artifacts.router, search.router, clips.router, people.router, videos.paths, uploads.router,
             storage_events.router, fleet.webhook, fleet.router)  # fmt: skip


def create(library: Library, bound: str = "127.0.0.1", setup_code: str = "", *, insecure: bool = False) -> FastAPI:
    """The application.

    Raises:
        NotAllowed: it would be open to strangers, or speak plain HTTP to other machines.
    """
    access = AccessPolicy(Accounts(library.home), library.settings, bound, setup_code, insecure)
    access.check()
    app = DescribedApp(
        title="rushes",
        version=version(),
        summary="Makes videos watchable, searchable and easy to cut; work continues after any crash.",
        docs_url=None,  # its page comes from a CDN; ours from here
        redoc_url=None,
        lifespan=_run_background,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.library, app.state.access, app.state.incarnation = library, access, secrets.token_hex(8)
    app.state.signer = Signer.of(library.home)
    app.state.hub, app.state.live_jobs, app.state.index_counts = (
        EventHub(library.jobs, access.metrics),
        LiveJobs(library.jobs),
        IndexCounts(),
    )
    app.state.mcp = McpEndpoint(library)
    app.state.fleet_watch, app.state.events = FleetWatch(library.home), open_listener(library.home)
    app.state.webhook = Webhook(library.home, lambda job: asdict(JobShape.of(job, ActiveJobs())))
    answer_errors(app)
    _include(app)
    origins = [o.strip() for o in library.settings.cors.split(",") if o.strip()]
    if origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=TOLD
        )
    app.add_middleware(HeadMiddleware)
    app.add_middleware(AccessMiddleware, policy=access, origin=library.uploads.bucket_origin)
    return app


def _include(app: FastAPI) -> None:
    for one in RESOURCES:
        app.include_router(one, prefix=API)
    for router in (fleet.health, metrics.router, media.router, documents.for_programs):
        app.include_router(router)
    app.router.routes.append(Route("/mcp", serve_mcp, methods=["POST"], include_in_schema=False))
    app.router.routes.extend([*swagger.routes(), *mount.ROUTES])
    mount.answer_with_pages(app)
    app.include_router(documents.router)  # last: a page of the same name goes first


@asynccontextmanager
async def _run_background(app: FastAPI) -> AsyncIterator[None]:
    """While it runs it follows the ledger; first it finishes uploads that had arrived when the last process died."""
    library: Library = app.state.library
    await asyncio.to_thread(library.maintenance.tidy_uploads)
    await asyncio.to_thread(forget_requests, library.home)
    await asyncio.to_thread(app.state.access.accounts.end_sessions)
    await asyncio.to_thread(app.state.access.accounts.audit.forget)
    app.state.hub.start(asyncio.get_running_loop())
    app.state.webhook.start()
    paths, listening = PathWatcher(library.home), app.state.events.listening()
    paths.start()
    await asyncio.to_thread(listening.__enter__)
    watches = [asyncio.create_task(_watch_schema(library)), asyncio.create_task(_watch_bucket(library))]
    try:
        with sending_figures("serve", lambda: metrics.server_figures(app.state)):
            yield
    finally:
        for watch in watches:
            watch.cancel()
        await app.state.mcp.stop()
        await asyncio.to_thread(listening.__exit__, None, None, None)
        await asyncio.to_thread(paths.stop)
        await asyncio.to_thread(app.state.webhook.stop)
        await asyncio.to_thread(app.state.hub.stop)


async def _watch_bucket(library: Library) -> None:
    """Look for files that were sent to the bucket as a whole: often while they are awaited, else every minute."""
    for look in itertools.count():
        if not library.uploads.bucket_origin:
            return
        with contextlib.suppress(RushesError):  # a store that is away is told of by those who need it
            await asyncio.to_thread(library.puts.look, old=look % OLD_LOOKS == 0)
        await asyncio.sleep(LOOK_SECONDS)


async def _watch_schema(library: Library) -> None:
    """Say once when a newer rushes has changed the store; /readyz says so as long as it is so."""
    outage = Outage("this server is older than its store")
    while True:
        await asyncio.sleep(SCHEMA_SECONDS)
        try:
            await asyncio.to_thread(library.maintenance.check_schema)
            outage.ended()
        except WrongHome as e:
            outage.began(f"{e}. {e.advice}")
        except RushesError:
            continue  # a store that is away is told of by those who need it
