"""AWS services by boto3: bounded time, requests counted, throttling backed off, errors translated."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from random import SystemRandom
from typing import Any

import boto3  # type: ignore[import-untyped]
from botocore import exceptions  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]

from rushes.domain.errors import NotAllowed, RushesError, StoreAway, Throttled, WrongHome
from rushes.metrics import PROCESS
from rushes.tracing import inner_span, is_on

PATIENCE_SECONDS = 10.0  # well inside a lease, so that a worker still hears that it was lost
CONDITION = "ConditionalCheckFailed"
_THROTTLED = frozenset(
    {"ProvisionedThroughputExceededException", "ThrottlingException", "Throttling", "RequestLimitExceeded",
     "RequestThrottled", "TransactionInProgressException", "TransactionConflictException", "LimitExceededException",
     "ContinuousBackupsUnavailableException"}
)  # fmt: skip
_BROKEN = frozenset({"InternalServerError", "InternalError", "InternalFailure", "ServiceUnavailable"})  # done or not?
_THROTTLED_REASONS = frozenset({"None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
_NOT_ALLOWED = frozenset(
    {"AccessDeniedException", "AccessDenied", "UnrecognizedClientException", "InvalidSignatureException",
     "MissingAuthenticationToken", "ExpiredTokenException", "InvalidClientTokenId"}
)  # fmt: skip
_MISSING = frozenset({"ResourceNotFoundException", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
_MISSING_HINT = (
    "Check the name. rushes creates its table and queues if its role allows it (dynamodb:CreateTable, "
    "sqs:CreateQueue); create the queue of storage events yourself."
)
_BATCHES = ("Entries", "TransactItems", "RequestItems")
_SKEW_MILLIS = 2000  # the Date of an answer has whole seconds
_chance = SystemRandom()


class ConditionFailed(Exception):
    """A condition did not hold; `reasons` has one entry per write, with the item that is there."""

    def __init__(self, reasons: list[dict[str, Any]]) -> None:
        super().__init__("a condition did not hold")
        self.reasons = reasons


class Service:
    """A client of one service; any number of threads may ask."""

    def __init__(
        self,
        name: str,
        endpoint: str = "",
        region: str = "",
        key: str = "",
        secret: str = "",
        patience: float = PATIENCE_SECONDS,
        answer_seconds: float = 5.0,
    ) -> None:
        """Empty means as AWS tools find it: environment, role of the machine."""
        config = Config(
            connect_timeout=2.0,
            read_timeout=answer_seconds,
            retries={"total_max_attempts": 1},  # ours below are counted, and end in time
            max_pool_connections=20,
            parameter_validation=False,
        )
        try:
            session = boto3.session.Session(key or None, secret or None, region_name=region or None)
            self._client = session.client(name, endpoint_url=endpoint or None, config=config)
        except exceptions.NoRegionError as e:
            raise WrongHome("no region is set", "Set AWS_REGION.") from e
        self._name, self._patience = name, patience
        self._lock = threading.Lock()
        self._skew = 0
        self.requests: Counter[str] = Counter()
        self.backed_off = 0

    @property
    def events(self) -> Any:
        """Where hooks of botocore are registered (tests break answers there)."""
        return self._client.meta.events

    @property
    def region(self) -> str:
        """Where its requests go."""
        return str(self._client.meta.region_name)

    def ask(self, operation: str, once: bool = False, **request: Any) -> Any:
        """Send a request; again while it is throttled or unanswered, unless it may be sent only `once`.

        Raises:
            ConditionFailed: a condition did not hold.
            StoreAway: no answer in time.
        """
        with inner_span(f"{self._name}.{operation}", "client", **(_told(request) if is_on() else {})):
            return self._answer(operation, request, once=once)

    def _answer(self, operation: str, request: Mapping[str, Any], *, once: bool) -> Any:
        for again, last in enumerate(self._tries()):
            if again:
                PROCESS.add(f"rushes_{self._name}_retries_total", operation=operation)
            with self._lock:
                self.requests[operation] += 1
            PROCESS.add(f"rushes_{self._name}_operations_total", operation=operation)
            PROCESS.add(f"rushes_{self._name}_throttles_total", 0, operation=operation)  # alerts need a first sample
            sent = time.time_ns() // 1_000_000
            try:
                return self._check_clock(getattr(self._client, operation)(**request), sent)
            except exceptions.ClientError as e:
                if _is_throttled(e):
                    PROCESS.add(f"rushes_{self._name}_throttles_total", operation=operation)
                _raise_unless_transient(e, once, last)
            except exceptions.NoCredentialsError as e:
                raise NotAllowed("no credentials for AWS were found") from e
            except exceptions.BotoCoreError as e:
                if once or last:
                    raise StoreAway(f"AWS did not answer: {e}") from e
        raise AssertionError("the last try returns or raises")

    def wait_for(self, what: str, **request: Any) -> None:
        """Wait until a resource exists (a waiter of boto3, by name)."""
        self._client.get_waiter(what).wait(**request, WaiterConfig={"Delay": 1, "MaxAttempts": 120})

    def wall_millis(self) -> int:
        """Wall time; that of the service where this machine's clock is wrong by more than a few seconds."""
        return time.time_ns() // 1_000_000 + self._skew

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def _tries(self) -> Iterator[bool]:
        """Whether each try is the last one; waits in between, longer each time, with jitter."""
        end, pause, last = time.monotonic() + self._patience, 0.025, False
        while not last:
            last = end - time.monotonic() < pause
            yield last
            self.backed_off += 1
            pause = min(1.0, 2 * pause)
            time.sleep(pause * _chance.uniform(0.5, 1.0))

    def _check_clock(self, answer: Any, sent: int) -> Any:
        """A date before the question or after the answer shows that this clock is wrong; a slow answer does not."""
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        if date:
            theirs, now = int(parsedate_to_datetime(date).timestamp() * 1000), time.time_ns() // 1_000_000
            self._skew = 0 if sent - _SKEW_MILLIS < theirs < now + _SKEW_MILLIS else theirs - now
        return answer


def _told(request: Mapping[str, Any]) -> dict[str, object]:
    """What spans tell of a request: its table or queue, and how much is in a batch."""
    batch = next((request[name] for name in _BATCHES if name in request), None)
    queue = str(request.get("QueueUrl", "")).rpartition("/")[2] or None
    return {"table": request.get("TableName"), "queue": queue, "count": None if batch is None else len(batch)}


def _raise_unless_transient(e: exceptions.ClientError, once: bool, last: bool) -> None:
    """Raise what an error means; return if the same request is to be sent again."""
    code, reasons = e.response["Error"]["Code"], e.response.get("CancellationReasons", [])
    codes = {reason.get("Code") or "None" for reason in reasons}
    if code == "ConditionalCheckFailedException":
        raise ConditionFailed([{"Item": e.response.get("Item")}]) from e
    if CONDITION in codes:
        raise ConditionFailed(reasons) from e
    broken = code in _BROKEN or e.response["ResponseMetadata"].get("HTTPStatusCode", 0) >= 500
    throttled = _is_throttled(e)
    if not broken and not throttled:
        raise _translate(code, str(e)) from e
    if last or (broken and once):
        raise (Throttled if throttled else StoreAway)(f"AWS is too busy: {code}") from e


def _is_throttled(e: exceptions.ClientError) -> bool:
    codes = {reason.get("Code") or "None" for reason in e.response.get("CancellationReasons", [])}
    return e.response["Error"]["Code"] in _THROTTLED or bool(codes and codes <= _THROTTLED_REASONS)


def _translate(code: str, message: str) -> RushesError:
    if code in _NOT_ALLOWED:
        return NotAllowed(message, "Check the credentials and the policy of this machine's role.")
    if code in _MISSING:
        return WrongHome(message, _MISSING_HINT)
    return RushesError(f"AWS refused: {message}")
