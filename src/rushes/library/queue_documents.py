"""Large parameters and results of jobs in custom queues: documents of the blob store.

First the document, then the ledger. A result has the number of its attempt: only that of the completing one is read.
"""

from dataclasses import dataclass

from rushes.blobs.documents import read_document
from rushes.domain.errors import OverLimit
from rushes.domain.keys import is_queue_document, params_key, queue_result_key
from rushes.home import Home

INLINE_BYTES = 64 * 1024  # parameters up to this size stand in the ledger
MOST_BYTES = 3 << 20  # as a message can carry
SIGNED_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Document:
    """Its bytes, or the address at which they are read for an hour; None of both if there is none."""

    data: bytes = b""
    address: str = ""
    size: int = 0


class QueueDocuments:
    """The documents of a home's jobs."""

    def __init__(self, home: Home) -> None:
        self._blobs, self._signer = home.blobs, home.multipart

    def keep_params(self, job: str, params: bytes) -> int:
        """Store them; whoever asks again with others gets those that are there. Answers their size."""
        self._keep(params_key(job), params)
        found = self._blobs.read(params_key(job), 0, 0)
        return found.size if found else len(params)

    def params(self, job: str, size: int) -> Document | None:
        """What was stored, None if it is missing."""
        return self._document(params_key(job), size)

    def keep_result(self, job: str, attempt: int, result: bytes) -> None:
        """Store what an attempt made; the first one of an attempt stays."""
        self._keep(queue_result_key(job, attempt), result)

    def result(self, job: str, attempt: int) -> Document:
        """What the attempt made that completed."""
        found = self._blobs.read(queue_result_key(job, attempt), 0, 0)
        document = self._document(queue_result_key(job, attempt), found.size) if found else None
        return document or Document()

    def forget(self, job: str) -> None:
        """Delete those of a job that is forgotten."""
        for key in list(filter(is_queue_document, self._blobs.keys(f"jobs/{job}/"))):
            self._blobs.delete(key)

    def _keep(self, key: str, data: bytes) -> None:
        if len(data) > MOST_BYTES:
            raise OverLimit(f"at most {MOST_BYTES >> 20} MB", "Store it elsewhere and send its address.")
        self._blobs.create(key, data)

    def _document(self, key: str, size: int) -> Document | None:
        if self._signer and size > INLINE_BYTES:
            return Document(address=self._signer.sign_get(key, SIGNED_SECONDS), size=size)
        data = read_document(self._blobs, key)
        return None if data is None else Document(data, size=len(data))
