"""The page to read and try an API: Swagger UI, served from this machine."""

from importlib.util import find_spec
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Route

PATH = "/docs"
START = f"{PATH}/start.js"
FILES = {f"{PATH}/{name}": name for name in ("swagger-ui-bundle.js", "swagger-ui.css")}
_PAGE = f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>rushes API</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="{PATH}/swagger-ui.css"></head>
<body><div id="swagger-ui"></div>
<script src="{PATH}/swagger-ui-bundle.js"></script><script src="{START}"></script></body>
</html>
"""
_SCRIPT = """\
SwaggerUIBundle({
  url: "/openapi.json", dom_id: "#swagger-ui", deepLinking: true, defaultModelsExpandDepth: 0,
  validatorUrl: null, // it is another host
});
"""
_HOUR = {"Cache-Control": "max-age=3600"}


def routes() -> list[BaseRoute]:
    """The page and its files; none if the package is not installed."""
    package = find_spec("fastapi_offline")  # brings the files; its code would need scripts inside of the page
    if package is None or package.origin is None:
        return []
    folder = Path(package.origin).parent / "static"

    async def page(_request: Request) -> Response:
        return HTMLResponse(_PAGE)

    async def script(_request: Request) -> Response:
        return Response(_SCRIPT, media_type="text/javascript")

    async def file(request: Request) -> Response:
        return FileResponse(folder / FILES[request.url.path], headers=_HOUR)

    return [Route(PATH, page), Route(START, script), *(Route(path, file) for path in FILES)]
