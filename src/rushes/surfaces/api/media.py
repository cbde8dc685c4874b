"""Files for players and people: playlists, segments, posters, frames, clips, originals; with ranges and ETags."""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import UnsupportedOperation
from pathlib import Path as File
from typing import Annotated, BinaryIO
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from rushes.domain.errors import NotFound, Refused
from rushes.library import Library
from rushes.library.videos import Video
from rushes.surfaces.http.deps import Id, LibraryDep
from rushes.surfaces.http.schemas import FILES

router = APIRouter(tags=["files"])
api = APIRouter(tags=["files"])
TYPES = {".m3u8": "application/vnd.apple.mpegurl", ".mp4": "video/mp4", ".m4a": "audio/mp4", ".jpg": "image/jpeg",
         ".ts": "video/mp2t", ".vtt": "text/vtt", ".json": "application/json"}  # fmt: skip
PUBLIC = ("videos/proxy/", "videos/clips/", "videos/3d/", "thumbs/", "frames/")  # names that hold a video's id
JOBS = ("jobs/", "segments/")  # names that hold a job's id
PIECE = 1 << 20  # bytes that are fetched from a far store at once
_WEEK = "private, max-age=604800"


@router.head("/files/{name:path}", response_class=Response, include_in_schema=False)
@router.get("/files/{name:path}", response_class=Response)
def get_file(request: Request, library: LibraryDep, name: Annotated[str, Path(max_length=500)]) -> Response:
    """Get a published file of the owner's videos or jobs."""
    prefix = next((p for p in (*PUBLIC, *JOBS) if name.startswith(p)), "")
    if not prefix:
        raise NotFound("file not found")
    id = name.removeprefix(prefix).partition("/")[0]
    library.jobs.get(id) if prefix in JOBS else library.videos.get(id)  # whose it is
    return published(request, library, name)


@api.head("/videos/{video_id}/frames/{ms}.jpg", response_class=Response, include_in_schema=False)
@api.get("/videos/{video_id}/frames/{ms}.jpg", response_class=Response)
def get_frame(
    request: Request, library: LibraryDep, video_id: Id, ms: Annotated[int, Path(ge=0, le=2**40)]
) -> Response:
    """Get the frame at a time (milliseconds of video time), or the poster if there is no frame."""
    video = library.videos.get(video_id)
    try:
        jpeg = library.videos.frame(video, ms * 1000)
    except NotFound:
        return _poster(video)
    etag = f'"{hashlib.sha256(jpeg).hexdigest()[:32]}"'
    return _with_etag(request, Response(jpeg, media_type="image/jpeg"), etag, _WEEK)


@api.get("/videos/{video_id}/poster", response_class=Response)
def get_poster(library: LibraryDep, video_id: Id) -> Response:
    """Redirect to the poster."""
    return _poster(library.videos.get(video_id))


@api.head("/videos/{video_id}/original", response_class=Response, include_in_schema=False)
@api.get("/videos/{video_id}/original", response_class=Response)
def get_original(request: Request, library: LibraryDep, video_id: Id) -> Response:
    """Download the original file."""
    video = library.videos.get(video_id)
    found = _original(library.videos.open_original(video), video)
    named = {"Content-Disposition": content_disposition(video.name)}
    return _served(request, found, "application/octet-stream", named)


def _poster(video: Video) -> Response:
    if not video.poster:
        raise NotFound(f"{video.name} has no poster yet")
    return RedirectResponse(FILES + video.poster, 307)


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Some bytes to serve: their version, how many, and how a part of them is read (b"" when it is another version)."""

    version: str
    size: int
    read: Callable[[int, int], bytes]
    close: Callable[[], None] = lambda: None


class _Streamed(StreamingResponse):
    """A part of some bytes; they are closed when it ends, also when the reader has left."""

    def __init__(
        self, found: _Bytes, part: tuple[int, int], status: int, headers: Mapping[str, str], kind: str
    ) -> None:
        super().__init__(_parts(found, *part), status, headers, kind)
        self._found = found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._found.close()


def published(request: Request, library: Library, name: str, disposition: str = "") -> Response:
    """A published file, from the folder, or by parts from a far store."""
    try:
        place = File(library.videos.address(name))
        found = _opened(place.open("rb")) if place.is_file() else _far(library, name)
    except Refused as e:
        raise NotFound("file not found") from e
    kind = TYPES.get(File(name).suffix, "application/octet-stream")
    return _served(request, found, kind, {"Content-Disposition": disposition} if disposition else {})


def _opened(file: BinaryIO) -> _Bytes:
    """A file of this machine: what is open stays the same file, whatever its path leads to later."""
    found = os.fstat(file.fileno())
    etag = f"{found.st_size:x}-{found.st_mtime_ns:x}-{found.st_ino:x}"
    return _Bytes(etag, found.st_size, lambda start, end: os.pread(file.fileno(), end - start, start), file.close)


def _original(file: BinaryIO, video: Video) -> _Bytes:
    """An original here, or one in a bucket, of which only the part that is asked for is fetched."""
    try:
        return _opened(file)
    except UnsupportedOperation:

        def read(start: int, end: int) -> bytes:
            file.seek(start)
            return file.read(end - start)

        return _Bytes(video.sha256[:32], file.seek(0, os.SEEK_END), read, file.close)


def _far(library: Library, name: str) -> _Bytes:
    found = library.videos.file_part(name, 0, 0)
    if found is None:
        raise NotFound("file not found", "It appears when its stage is done.")
    version, size, _ = found

    def read(start: int, end: int) -> bytes:
        part = library.videos.file_part(name, start, end)
        return part[2] if part and part[0] == version else b""

    return _Bytes(version, size, read)


def _served(request: Request, found: _Bytes, kind: str, headers: Mapping[str, str]) -> Response:
    etag, size = f'"{found.version}"', found.size
    said = {**headers, "ETag": etag, "Cache-Control": "private, no-cache", "Accept-Ranges": "bytes"}
    if is_unchanged(request, etag):
        return _Streamed(found, (0, 0), 304, said, kind)
    whole = request.headers.get("if-range", etag) != etag
    start, end = (0, size) if whole else parse_range(request.headers.get("range", ""), size)
    if start >= end and size:
        return _Streamed(found, (0, 0), 416, said | {"Content-Range": f"bytes */{size}"}, kind)
    said["Content-Length"] = str(end - start)
    if end - start < size:
        said["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    status = 206 if "Content-Range" in said else 200
    return _Streamed(found, (0, 0) if request.method == "HEAD" else (start, end), status, said, kind)


def parse_range(said: str, size: int) -> tuple[int, int]:
    """What a Range header asks for, end exclusive; empty if there is nothing, all of it if it is no single range."""
    asked = re.fullmatch(r"bytes=(\d{0,18})-(\d{0,18})", said.strip())
    if not asked or asked.group(1) == asked.group(2) == "":
        return 0, size
    first, last = asked.groups()
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1) if last else size


def _parts(found: _Bytes, start: int, end: int) -> Iterator[bytes]:
    """Piece by piece; one that is replaced meanwhile ends early, so that no player gets half of each."""
    while start < end and (part := found.read(start, min(end, start + PIECE))):
        yield part
        start += len(part)


def is_unchanged(request: Request, etag: str) -> bool:
    """Whether the reader has it: its tag is among those named, perhaps made weak by a proxy that packs."""
    named = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    return etag in named or "*" in named


def _with_etag(request: Request, answer: Response, etag: str, keep: str) -> Response:
    """The answer, or that the reader has it."""
    headers = {"ETag": etag, "Cache-Control": keep}
    if is_unchanged(request, etag):
        return Response(status_code=304, headers=headers)
    answer.headers.update(headers)
    return answer


def content_disposition(name: str, *, download: bool = True) -> str:
    """A header that gives a file its name in any script; old programs read the plain one."""
    plain, full = re.sub(r"[^A-Za-z0-9 ._()-]", "_", name), quote(name, safe="", errors="replace")
    return f"{'attachment' if download else 'inline'}; filename=\"{plain}\"; filename*=UTF-8''{full}"
