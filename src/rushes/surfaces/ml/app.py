"""The inference service as an application: health, calls, metrics."""

import secrets
from typing import Any, get_args

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from rushes.library import version
from rushes.library.inference import Films, InferenceService, StereoFilms
from rushes.settings import Settings
from rushes.surfaces.http import swagger
from rushes.surfaces.http.access import is_our_host, wrong_host
from rushes.surfaces.http.bodies import limited
from rushes.surfaces.http.openapi import DescribedApp
from rushes.surfaces.http.problems import problem
from rushes.surfaces.http.proxy import is_loopback
from rushes.surfaces.ml import calls, infer, invocations
from rushes.surfaces.ml.metrics import exposition
from rushes.surfaces.ml.problems import answer_errors
from rushes.surfaces.ml.schemas import HealthResponse
from rushes.surfaces.ml.turns import Turns

OPEN = ("/", "/health", "/ping", "/openapi.json", swagger.PATH, swagger.START, *swagger.FILES)
SAME_SITE = ("none", "same-origin")
FAILURES = {
    "400": "Invalid request",
    "409": "Another version of the model is loaded",
    "429": "Too many callers: see Retry-After",
    "500": "Inference error",
}


def create(service: InferenceService, settings: Settings, bound: str = "127.0.0.1") -> FastAPI:
    """The application of a service that has been started; `bound` is the address that it listens on."""
    app = MlApp(
        title="rushes ML service",
        version=version(),
        summary="Stateless inference for video analysis.",
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    app.state.films, app.state.stereo = Films(service, settings), StereoFilms(settings)
    app.state.turns = app.state.hub = Turns(service, settings.inference_queue + app.state.stereo.queue.bound)
    answer_errors(app)
    app.include_router(calls.router)
    app.include_router(infer.router)
    app.include_router(invocations.router)
    app.add_api_route("/health", health, name="getHealth", tags=["health"], response_model=HealthResponse)
    app.add_api_route("/ping", ping, name="ping", tags=["health"])
    app.add_api_route("/metrics", metrics, name="metrics", tags=["health"], response_class=PlainTextResponse)
    app.router.routes.extend([Route("/", start_page), *swagger.routes()])
    app.add_middleware(BodyMiddleware)
    app.add_middleware(OnePathMiddleware)
    app.add_middleware(AccessMiddleware, token=settings.inference_token, bound=bound, hosts=settings.hosts)
    return app


async def start_page(_request: Request) -> Response:
    """Who opens the address of the service is shown what it can be asked."""
    return RedirectResponse(swagger.PATH)


async def health(request: Request) -> HealthResponse:
    """Whether the models answer."""
    return HealthResponse.of(await run_in_threadpool(request.app.state.service.health))


async def ping(request: Request, response: Response) -> dict[str, str]:
    """The same for SageMaker: 200 while it can be asked."""
    status = request.app.state.service.status()
    response.status_code = 503 if status == "unhealthy" else 200
    return {"status": status}


async def metrics(request: Request) -> PlainTextResponse:
    """Counters in the format of Prometheus."""
    return PlainTextResponse(exposition(request.app.state.service), media_type="text/plain; version=0.0.4")


class MlApp(DescribedApp):
    """An application whose description says who may ask and what may go wrong."""

    def openapi(self) -> dict[str, Any]:
        """The contract, as it stands in openapi/ml.yaml."""
        doc = super().openapi()
        doc["components"]["securitySchemes"]["token"]["description"] = "RUSHES_INFERENCE_TOKEN of the service, if set"
        for path, operations in doc["paths"].items():
            for operation in operations.values() if path.startswith(("/infer", "/inv", "/v1")) else ():
                told = operation["responses"]["default"]["content"]
                operation["responses"] |= {
                    code: {"description": why, "content": told} for code, why in FAILURES.items()
                }
        return doc


class OnePathMiddleware:
    """SageMaker knows one path for all questions: a call that comes to it goes where its type says."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on, to /v1/CAPABILITY if the type is application/octet-stream; capability=CAPABILITY."""
        if scope["type"] == "http" and scope["path"] == "/invocations":
            kind, _, capability = Headers(scope=scope).get("content-type", "").partition("; capability=")
            if kind == calls.BINARY and capability in get_args(get_args(calls.Capability)[0]):
                scope = {**scope, "path": f"/v1/{capability}"}
        await self._app(scope, receive, send)


class BodyMiddleware:
    """Bodies end by size and time as those of `rushes serve`; calls are larger, and look at theirs themselves."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on."""
        small = scope["type"] == "http" and not scope["path"].startswith(calls.router.prefix)
        await self._app(scope, limited(receive, upload=False) if small else receive, send)


class AccessMiddleware:
    """Who has the token may ask, and no page of another site; without a token, nobody by a name that is not ours."""

    def __init__(self, app: ASGIApp, token: str, bound: str, hosts: str) -> None:
        self._app, self._token, self._bound, self._hosts = app, token.encode(), bound, hosts
        self._named = not token and (is_loopback(bound) or bool(hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on what may ask."""
        answer = self._refusal(Headers(scope=scope), scope["path"]) if scope["type"] == "http" else None
        await (answer or self._app)(scope, receive, send)

    def _refusal(self, headers: Headers, path: str) -> Response | None:
        if self._named and not is_our_host(headers.get("host", ""), self._bound, self._hosts):
            return wrong_host()
        if headers.get("sec-fetch-site", "none") not in SAME_SITE:
            return problem(403, "requests from other sites are refused")
        given = headers.get("authorization", "").removeprefix("Bearer ").encode()
        if self._token and path not in OPEN and not secrets.compare_digest(given, self._token):
            return problem(401, "a token is required", "Set inference_token (RUSHES_INFERENCE_TOKEN).")
        return None
