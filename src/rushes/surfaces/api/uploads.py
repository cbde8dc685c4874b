"""Resumable uploads by tus 1.0 (creation, checksum, termination), for browsers and for curl."""

import base64
import binascii
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any

from anyio import CancelScope
from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Request, Response
from starlette.requests import ClientDisconnect

from rushes.domain.errors import Refused
from rushes.library import JobRequest, SignedPart, Upload, UploadBusy, Uploads, UploadWriter
from rushes.library.videos.stereo import in_format
from rushes.surfaces.http.deps import Id, LibraryDep, caller_of
from rushes.surfaces.http.problems import problem

router = APIRouter(tags=["uploads"])
TUS = "1.0.0"
PARTS = "/api/v1/uploads/{}/parts"  # where the addresses of parts are asked for
OFFSET_TYPE = "application/offset+octet-stream"
EXTENSIONS = "creation,checksum,termination"
WRONG_SUM = 460  # as the protocol says
_PIECE = 1 << 20  # bytes that are written at once

Length = Annotated[int, Header(alias="Upload-Length", ge=1, le=2**53)]
Later = Annotated[int, Header(alias="Upload-Length", ge=1, le=2**53)]
Metadata = Annotated[str, Header(alias="Upload-Metadata", max_length=4000)]
Offset = Annotated[int, Header(alias="Upload-Offset", ge=0, le=2**53)]
Sum = Annotated[str, Header(alias="Upload-Checksum", max_length=200)]
Type = Annotated[str, Header(alias="Content-Type", max_length=200)]


@dataclass(frozen=True, slots=True)
class UploadShape:
    """The status of an upload, and the job that waits for it."""

    id: str
    name: str
    size: int
    offset: int
    state: str
    why: str
    job: str

    @staticmethod
    def of(upload: Upload) -> "UploadShape":
        """From the library."""
        return UploadShape(**{name: getattr(upload, name) for name in UploadShape.__slots__})


@dataclass(frozen=True, slots=True)
class PartsShape:
    """The parts to send next; empty when all are there."""

    upload: UploadShape
    parts: tuple[SignedPart, ...]


@router.options("/uploads", status_code=204, response_class=Response)
def describe_uploads(library: LibraryDep) -> Response:
    """Get the tus version and extensions of this server."""
    most = library.settings.upload_gb * 10**9
    said = {"Tus-Version": TUS, "Tus-Extension": EXTENSIONS, "Tus-Max-Size": str(most)}
    return _tus(204, **said, **{"Tus-Checksum-Algorithm": "sha256,sha1"})


@router.post("/uploads", status_code=201, response_class=Response)
def begin_upload(request: Request, library: LibraryDep, length: Length, metadata: Metadata = "") -> Response:
    """Announce a file; name, recipe, profile, language, 3D format and sha256 are metadata. Its job waits for it.

    With `direct` in the metadata its parts go to the bucket, if there is one: then Rushes-Parts says where to ask.
    """
    said = read_metadata(metadata)
    recipe, profile, language, format = (said.get(name, "") for name in ("recipe", "profile", "language", "format"))
    wanted = in_format(JobRequest(recipe=recipe, profile=profile, language=language), format)
    name, sha256 = said.get("filename", "upload"), said.get("sha256", "").lower()
    upload = library.uploads.begin(
        name, length, wanted, sha256, direct="direct" in said, caller=caller_of(request).name
    )
    return _tus(201, Location=f"/api/v1/uploads/{upload.id}", **_where(upload))


@router.head("/uploads/{upload_id}", response_class=Response)
def find_upload(library: LibraryDep, upload_id: Id) -> Response:
    """Get the offset of an upload: how much has arrived."""
    uploads = library.uploads
    upload = uploads.get(upload_id)
    with suppress(UploadBusy):  # somebody is about it
        upload = uploads.finish(upload)
    if upload.state == "refused":
        return _tus(410)
    received = "" if upload.multipart or upload.put else str(uploads.staging_file(upload).received())
    length = {"Upload-Length": str(upload.size)} if upload.size else {"Upload-Defer-Length": "1"}
    return _tus(200, **_where(upload), **length, **{"Rushes-Received": received, "Cache-Control": "no-store"})


@router.get("/uploads/{upload_id}")
def get_upload(library: LibraryDep, upload_id: Id) -> UploadShape:
    """Get the status of an upload."""
    return UploadShape.of(library.uploads.get(upload_id))


@router.post("/uploads/{upload_id}/parts")
def request_parts(library: LibraryDep, upload_id: Id, length: Later = 0) -> PartsShape:
    """Get signed addresses of the parts that the bucket lacks; repeat until none is left, then the job starts.

    Of an upload whose size was not promised, Upload-Length tells it.
    """
    uploads = library.uploads
    upload = uploads.get(upload_id)
    upload, pieces = uploads.missing(uploads.set_size(upload, length) if length else upload)
    return PartsShape(UploadShape.of(upload), pieces)


@router.post("/uploads/{upload_id}/received", status_code=204, response_class=Response)
def keep_received(library: LibraryDep, upload_id: Id, checksum: Sum = "") -> Response:
    """Keep what arrived before an interruption: `checksum` covers Upload-Offset to Rushes-Received (see HEAD)."""
    uploads = library.uploads
    upload, wanted = uploads.get(upload_id), _sum(checksum)
    if wanted is None or upload.multipart:
        raise Refused("a checksum is required", "For example: Upload-Checksum: sha256 47DEQpj8HBSa...")
    kept = uploads.keep_received(upload, *wanted)
    if kept is None:
        said = {"Upload-Offset": str(uploads.get(upload_id).offset)}
        return problem(WRONG_SUM, "the data does not match its checksum", "Send it again.", "WrongChecksum", said)
    return _tus(204, **_where(kept))


@router.patch("/uploads/{upload_id}", status_code=204, response_class=Response)
async def continue_upload(
    request: Request,
    library: LibraryDep,
    upload_id: Id,
    offset: Offset,
    type: Type = "",
    checksum: Sum = "",
    length: Later = 0,
) -> Response:
    """Send the next part; what arrived before an interruption is kept. Upload-Length sets a size that was left open."""
    uploads = library.uploads
    upload = await run_sync(uploads.get, upload_id)
    if length:
        upload = await run_sync(uploads.set_size, upload, length)
    if type.partition(";")[0].strip() != OFFSET_TYPE:
        return problem(415, f"parts are sent as {OFFSET_TYPE}", "Set the Content-Type.", "WrongType")
    wanted = _sum(checksum)
    async with _writing(uploads, upload) as part:
        if part.offset != offset:
            said = {"Upload-Offset": str(part.offset)}
            return problem(409, f"the upload is at offset {part.offset}", "Continue from there.", "WrongOffset", said)
        try:
            fits = await _receive(request, part, wanted)
        except ClientDisconnect:
            return _tus(400)  # nobody reads it: the line was cut, and the next HEAD tells how much came
        if not fits:
            return problem(WRONG_SUM, "the part does not match its checksum", "Send it again.", "WrongChecksum")
        if request.method == "PUT":
            await run_sync(part.end)
        done = await run_sync(part.finish)
    return _tus(204, **{"Upload-Offset": str(done.offset), "Rushes-Job": done.job})


@router.put("/uploads/{upload_id}", status_code=204, response_class=Response)
async def send_upload(request: Request, library: LibraryDep, upload_id: Id, checksum: Sum = "") -> Response:
    """Send the whole file from its beginning; after an interruption, PATCH can continue it."""
    uploads = library.uploads
    async with _writing(uploads, await run_sync(uploads.get, upload_id)) as part:
        await run_sync(part.truncate_to, 0)
    return await continue_upload(request, library, upload_id, 0, OFFSET_TYPE, checksum)


@router.delete("/uploads/{upload_id}", status_code=204, response_class=Response)
def cancel_upload(library: LibraryDep, upload_id: Id) -> Response:
    """Cancel an upload: its data is deleted and its job is cancelled."""
    uploads = library.uploads
    upload = uploads.get(upload_id)
    if upload.state == "arrived":
        raise Refused(
            "the upload is complete", f"Cancel its job: POST /api/v1/jobs/{library.jobs.get(upload.job).id}/cancel"
        )
    uploads.drop(upload)
    return _tus(204)


def read_metadata(text: str) -> Mapping[str, str]:
    """`filename d29ybGQ=,recipe c3VidGl0bGVz` as a dictionary.

    Raises:
        Refused: it is not written so.
    """
    found: dict[str, str] = {}
    for pair in filter(None, (p.strip() for p in text.split(","))):
        name, _, value = pair.partition(" ")
        try:
            found[name] = base64.b64decode(value, validate=True).decode("utf-8").replace("\0", "")
        except (binascii.Error, ValueError) as e:
            raise Refused("Upload-Metadata is not base64", "name base64, name base64, ...") from e
    return found


@asynccontextmanager
async def _writing(uploads: Uploads, upload: Upload) -> AsyncIterator[UploadWriter]:
    """As `Uploads.writing`, entered and left in a thread: a slow store blocks no other request."""
    writing = uploads.writing(upload)
    part = await run_sync(writing.__enter__)
    try:
        yield part
    finally:
        with CancelScope(shield=True):  # a request that is given up leaves it too
            await run_sync(writing.__exit__, None, None, None)


async def _receive(request: Request, part: UploadWriter, wanted: tuple[Any, bytes] | None) -> bool:
    """Write the data as it arrives, a megabyte at a time; False (and nothing kept) if the checksum differs."""
    begin, waiting = part.offset, bytearray()
    if wanted:
        await run_sync(part.mark_unverified)  # so that a cut, an error or a kill leaves nothing that counts
    try:
        async for piece in request.stream():
            waiting += piece
            if wanted:
                wanted[0].update(piece)
            if len(waiting) >= _PIECE:
                await run_sync(part.write, bytes(waiting))
                waiting.clear()
        if waiting:
            await run_sync(part.write, bytes(waiting))
    except ClientDisconnect:
        if waiting:  # of a part with a checksum it counts when the sender says so; nothing at all is no empty film
            await run_sync(part.write, bytes(waiting))
        raise
    if wanted and wanted[0].digest() != wanted[1]:
        await run_sync(part.truncate_to, begin)
        return False
    if wanted:
        await run_sync(part.mark_verified)
    return True


def _sum(text: str) -> tuple[Any, bytes] | None:
    if not text:
        return None
    name, _, value = text.partition(" ")
    try:
        expected = base64.b64decode(value, validate=True)
    except binascii.Error as e:
        raise Refused("Upload-Checksum is not base64", "For example: sha256 47DEQpj8HBSa...") from e
    if name not in ("sha256", "sha1"):
        raise Refused(f"unknown checksum {name[:20]!r} here", "Use sha256 or sha1.")
    return hashlib.new(name, usedforsecurity=False), expected


def _where(upload: Upload) -> dict[str, str]:
    parts = {"Rushes-Parts": PARTS.format(upload.id)} if upload.multipart else {}
    return {"Upload-Offset": str(upload.offset), "Rushes-Job": upload.job, **parts}


def _tus(status: int, **headers: str) -> Response:
    return Response(status_code=status, headers={"Tus-Resumable": TUS, **headers})
