"""An asynchronous endpoint of SageMaker: asked in one attempt of a task, answered in a bucket, read in a later one.

What was asked is noted in a folder of a bucket, so that whoever works on the task next reads the answer and does not
ask again: `input/TASK/CALL` is what the endpoint reads, `asks/TASK/CALL` says where it answers, and `waiting/ADDRESS`
names the task that waits for what comes to an address.
"""

import contextlib
import hashlib
import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from obstore.exceptions import AlreadyExistsError

from rushes.aws.client import Service
from rushes.bucket.client import BucketClient, connect, translate_errors
from rushes.bucket.location import BucketLocation, parse_location
from rushes.domain.errors import AnswerPending, EngineAway, InferenceFailed, RushesError
from rushes.engines.in_flight import InFlight
from rushes.engines.wire import LARGEST, call_name
from rushes.telemetry import log

FIRST_LOOK_SECONDS = 5.0  # after a question, if no event tells of the answer: seconds are lost, never work
LAST_LOOK_SECONDS = 300.0
QUEUED_SECONDS = 21_600  # that a question may wait in the endpoint's queue: the most that SageMaker allows
_LONGEST_CALL = 3600
_LOOK_SECONDS = 1.0  # between looks for the answers of all questions in flight
_ID_LENGTH = 64
_TEXT = 2000
_HINT = "Check the endpoint, the rights of this machine and the setting inference. Work continues automatically."
_DOING = "calling an asynchronous endpoint"


@dataclass(frozen=True, slots=True)
class Question:
    """A question that was asked: where its answer or failure comes, and when it was asked."""

    output: str
    failure: str
    at: float

    @property
    def age(self) -> float:
        """Seconds, by the clocks of two machines."""
        return max(0.0, time.time() - self.at)


class AsynchronousEndpoint:
    """An endpoint, for all slots of a worker."""

    def __init__(self, service: Service, name: str, folder: BucketLocation, seconds: int, in_flight: InFlight) -> None:
        """`folder` is where it reads; each question may take so many seconds."""
        self._service, self._name, self._folder = service, name, folder
        self._call_seconds, self._in_flight = min(seconds, _LONGEST_CALL), in_flight
        self._clients: dict[str, BucketClient] = {}
        self._look_after = 0.0  # for answers to what is in flight
        self._turned_away: dict[str, float] = {}  # tasks that found too many questions in flight, and when

    def answer(self, task: str, fence: int, capability: str, call: bytes) -> bytes:
        """What lies where the endpoint was told to answer; a task that finds too many questions in flight waits too."""
        name = call_name(task, capability, call)
        asked = self._asked(name)
        if asked is None:
            self._ask(task, fence, capability, call)
            raise AnswerPending(f"{self._name} was asked", delay=FIRST_LOOK_SECONDS)
        if (answer := self._answer_to(name, asked)) is not None:
            self._in_flight.leave(name)
            return answer
        if (told := self._read(asked.failure)) is not None:
            self._withdraw(name, asked)
            raise InferenceFailed(f"{self._name} failed: {told.decode('utf-8', 'replace')[:_TEXT]}")
        if asked.age > QUEUED_SECONDS + self._call_seconds:
            self._withdraw(name, asked)
            raise InferenceFailed(f"{self._name} did not answer within {asked.age / 3600:.1f} hours")
        wait = min(max(asked.age, FIRST_LOOK_SECONDS), LAST_LOOK_SECONDS)
        raise AnswerPending(f"{self._name} has not answered yet", delay=wait)

    def forget(self, name: str) -> None:
        """Delete a question and its answer."""
        if asked := self._asked(name):
            self._withdraw(name, asked)
            self._delete(asked.output)

    def task_at(self, bucket: str, key: str) -> str:
        """The task that waits for what came to a key; empty if none does."""
        address = f"s3://{bucket}/{key}"
        if address.startswith(f"{self._folder.url}/"):
            return ""
        return (self._read(self._note(address)) or b"").decode()

    def _answer_to(self, name: str, asked: Question) -> bytes | None:
        try:
            return self._read(asked.output)
        except InferenceFailed:
            self._withdraw(name, asked)
            self._delete(asked.output)
            raise

    def _ask(self, task: str, fence: int, capability: str, call: bytes) -> None:
        name = call_name(task, capability, call)
        with self._turn(task, name):
            source = f"{self._folder.url}/input/{name}"
            self._write(source, call)
            reply = self._invoke(f"{task}.{fence}"[-_ID_LENGTH:], capability, source)
            asked = Question(reply["OutputLocation"], reply.get("FailureLocation", ""), time.time())
            self._write(f"{self._folder.url}/asks/{name}", json.dumps(asdict(asked)).encode(), new=True)
            for address in filter(None, (asked.output, asked.failure)):
                self._write(self._note(address), task.encode())
            self._in_flight.asked(name)

    def _invoke(self, id: str, capability: str, source: str) -> Mapping[str, str]:
        try:
            return self._service.ask(  # type: ignore[no-any-return]
                "invoke_endpoint_async",
                once=True,
                EndpointName=self._name,
                ContentType=f"application/octet-stream; capability={capability}",
                InferenceId=id,
                InputLocation=source,
                RequestTTLSeconds=QUEUED_SECONDS,
                InvocationTimeoutSeconds=self._call_seconds,
            )
        except RushesError as e:  # no rights, no such endpoint, no network: neither the work nor a store is to blame
            raise EngineAway(f"{self._name} cannot be asked: {e}", _HINT) from e

    @contextlib.contextmanager
    def _turn(self, task: str, name: str) -> Iterator[None]:
        """While a question is asked; if that fails, it is not in flight.

        Raises:
            AnswerPending: too many are in flight: the task waits, and its slot does not.
        """
        if not self._in_flight.enter(name):
            self._drop_answered()
            if not self._in_flight.enter(name):
                text = f"{self._in_flight.most} questions to {self._name} wait for an answer (inference_max_in_flight)"
                raise AnswerPending(text, delay=self._turn_seconds(task))
        self._turned_away.pop(task, None)
        try:
            yield
        except BaseException:
            self._in_flight.leave(name)
            raise

    def _turn_seconds(self, task: str) -> float:
        """When a task that was turned away comes again: the later, the more of them there are."""
        now = time.monotonic()
        lately = {other: at for other, at in self._turned_away.items() if now - at < LAST_LOOK_SECONDS}
        self._turned_away = {**lately, task: now}
        return min(FIRST_LOOK_SECONDS * math.ceil(len(self._turned_away) / self._in_flight.most), LAST_LOOK_SECONDS)

    def _drop_answered(self) -> None:
        """Ask for the exact keys: other workers may have taken up the answers."""
        if time.monotonic() < self._look_after:
            return
        self._look_after = time.monotonic() + _LOOK_SECONDS
        for name in self._in_flight.names():
            asked = self._asked(name)
            if not asked or asked.age > QUEUED_SECONDS + self._call_seconds or self._is_answered(asked):
                self._in_flight.leave(name)

    def _is_answered(self, asked: Question) -> bool:
        return any(self._exists(address) for address in (asked.output, asked.failure))

    def _withdraw(self, name: str, asked: Question) -> None:
        """The next attempt asks again; events that come late name no task."""
        self._in_flight.leave(name)
        for address in filter(None, (asked.output, asked.failure)):
            self._delete(self._note(address))
        self._delete(f"{self._folder.url}/input/{name}")
        self._delete(f"{self._folder.url}/asks/{name}")

    def _asked(self, name: str) -> Question | None:
        noted = self._read(f"{self._folder.url}/asks/{name}")
        return Question(**json.loads(noted)) if noted else None

    def _note(self, address: str) -> str:
        return f"{self._folder.url}/waiting/{hashlib.sha256(address.encode()).hexdigest()[:32]}"

    # Objects by their addresses
    def _read(self, address: str) -> bytes | None:
        """What lies there, None if nothing does.

        Raises:
            InferenceFailed: it is larger than an answer may be.
        """
        if not address:
            return None
        client, key = self._place(address)
        with translate_errors(_DOING), contextlib.suppress(FileNotFoundError):
            found = client.get(key)
            if found.meta["size"] > LARGEST:
                raise InferenceFailed(f"{self._name} answered with more than {LARGEST} bytes")
            return bytes(found.bytes())
        return None

    def _exists(self, address: str) -> bool:
        if not address:
            return False
        client, key = self._place(address)
        with translate_errors(_DOING), contextlib.suppress(FileNotFoundError):
            return bool(client.head(key))
        return False

    def _write(self, address: str, data: bytes, *, new: bool = False) -> None:
        """Put bytes at an address; with `new` what is there stays: a twin asked before."""
        client, key = self._place(address)
        with translate_errors(_DOING), contextlib.suppress(AlreadyExistsError):
            client.put(key, data, mode="create" if new else "overwrite")

    def _delete(self, address: str) -> None:
        """What stays is cleared by the bucket's rules."""
        client, key = self._place(address)
        try:
            client.delete(key)
        except Exception as e:  # noqa: BLE001 - the work does not depend on it
            log.info("%s stays: %s", address, e)

    def _place(self, address: str) -> tuple[BucketClient, str]:
        place = parse_location(address)
        if place.bucket not in self._clients:
            self._clients[place.bucket] = connect(replace(self._folder, bucket=place.bucket, prefix=""))
        return self._clients[place.bucket], place.prefix
