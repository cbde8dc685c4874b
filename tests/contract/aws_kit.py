"""DynamoDB and SQS for tests: one emulator per process, started when first asked for; a folder has its own rows.

RUSHES_TEST_MOTO=1 takes moto instead of ministack, as a second opinion; see MOTO_GAPS.
"""

import atexit
import contextlib
import functools
import json
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ReadTimeoutError  # type: ignore[import-untyped]
from tests.servers_aws import KEY, SECRET, ministack, moto

from rushes.aws.client import CONDITION, ConditionFailed, Service
from rushes.aws.table import Item, Table, Write
from rushes.domain.errors import RushesError
from rushes.ledger.clock import Millis, Seconds
from rushes.ledger.dynamodb.store import Heartbeats
from rushes.servers.process import Running
from rushes.transport.sqs import SqsHints

LANES = ("cpu", "gpu", "now")
_hooks: list[tuple[Service, str, Callable[..., Any]]] = []
MOTO = bool(os.environ.get("RUSHES_TEST_MOTO"))


MOTO_GAPS = {  # part of a test's name: why moto cannot pass it
    "of_many_who_expect_the_same_version_one_wins": "transactions of several threads are not kept apart",
    "two_handles_that_race": "transactions of several threads are not kept apart",
    "one_handle_serves_several_threads": "transactions of several threads are not kept apart",
    "whose_reply_was_cut_come_with_the_next_claim": "no PartiQL: claims are sent one by one here",
    "throttled_requests": "no PartiQL: claims are sent one by one here",
    "pages_of_their_real_size": "every transaction copies the table: too slow for a wide plan",
}


class OneByOne(Table):
    """Claims for a server without PartiQL: an update for each."""

    def execute(self, statements: Sequence[Write]) -> list[Item]:
        return [item for item in map(self._execute, statements) if item]

    def _execute(self, statement: Write) -> Item | None:
        text, values = statement["Statement"], iter(statement["Parameters"])
        sets = {name: next(values) for name in re.findall(r'SET "(\w+)"=\?', text)}
        counts = re.findall(r'SET "(\w+)"="', text)
        key = {"pk": next(values), "sk": next(values)}
        lists = list(values)
        named = {f"#{name}": name for name in (*sets, *counts, "list_name")}
        said = ", ".join([f"#{name} = :{name}" for name in sets] + [f"#{name} = #{name} + :one" for name in counts])
        given = {f":{name}": value for name, value in sets.items()} | {":one": {"N": "1"}}
        given |= {f":is{n}": name for n, name in enumerate(lists)}
        asks = f"#list_name IN ({', '.join(f':is{n}' for n in range(len(lists)))})"
        try:
            answer = self.service.ask(
                "update_item", TableName=self.name, Key=key, UpdateExpression=f"SET {said}", ReturnValues="ALL_NEW",
                ConditionExpression=asks, ExpressionAttributeNames=named, ExpressionAttributeValues=given,
            )  # fmt: skip
        except ConditionFailed:
            return None
        return self._decoded(answer["Attributes"])


@functools.cache
def server() -> Running:
    """An emulator that lives as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="aws-"))
    running = moto(folder) if MOTO else ministack(folder)
    atexit.register(shutil.rmtree, folder)
    atexit.register(running.stop)
    return running


def service(name: str, endpoint: str = "", patience: float = 60.0) -> Service:
    """A client of its own."""
    made = Service(name, endpoint or server().url, "us-east-1", KEY, SECRET, patience, answer_seconds=25.0)
    atexit.register(made.close)
    return made


@functools.cache
def shared(name: str) -> Service:
    """The client that tests share: making one takes 50 ms."""
    return service(name)


@functools.cache
def breakable(name: str) -> Service:
    """A client for faults; whoever uses it mends it."""
    return service(name)


def hook(service: Service, event: str, do: Callable[..., Any]) -> None:
    """Enter something at a point of botocore's, until it is mended."""
    service.events.register(event, do)
    _hooks.append((service, event, do))


def mend(service: Service) -> None:
    """Take out every fault, and count anew."""
    while _hooks:
        of, event, do = _hooks.pop()
        of.events.unregister(event, do)
    service.requests.clear()
    service.backed_off = 0


@functools.cache
def _made(_folder: Path | None) -> None:
    table, ask = Table(shared("dynamodb")), shared("dynamodb").ask
    with contextlib.suppress(RushesError):
        ask("update_table", TableName=table.name, DeletionProtectionEnabled=False)
        ask("delete_table", TableName=table.name)
    table.create()
    off = {"Enabled": False, "AttributeName": "expires"}  # the clock of tests stands in 2023
    ask("update_time_to_live", TableName=table.name, TimeToLiveSpecification=off)


@functools.cache
def prefix(folder: Path) -> str:
    """What the partitions of a folder's rows begin with."""
    return f"{secrets.token_hex(4)}/"  # unlike those of other processes, should they share an emulator


def table(folder: Path, wall: Millis | None = None, using: Service | None = None) -> Table:
    """The part of the table that is this folder's."""
    _made(folder if MOTO else None)  # moto copies the whole table in every transaction: it must stay small
    return (OneByOne if MOTO else Table)(using or shared("dynamodb"), prefix=prefix(folder), wall=wall)


def hints(env: str = "", using: Service | None = None, clock: Seconds = time.monotonic) -> SqsHints:
    """Queues of their own, or those of another handle."""
    made = SqsHints(using or shared("sqs"), env or secrets.token_hex(4), clock)
    if not env:
        made.create(LANES)
    return made


@functools.cache
def heartbeats(folder: Path, clock: Seconds) -> Heartbeats:
    """What the handles of one test have seen: they are one process."""
    return Heartbeats(clock)


# Faults, entered where botocore lets one in
def cut(service: Service, operation: str, times: int = 1) -> None:
    """The next replies are lost after the request was carried out."""

    def lose(**_: Any) -> None:
        raise ReadTimeoutError(endpoint_url="cut")

    _next_times(service, f"after-call.*.{operation}", times, lose)


def throttle(service: Service, operation: str, times: int, code: str = "ThrottlingException") -> None:
    """The next requests are refused because there are too many."""
    headers = {"x-amzn-requestid": "0"}
    said = {"Error": {"Code": code, "Message": "too many"}, "ResponseMetadata": {"HTTPHeaders": headers}}
    _next_times(service, f"before-call.*.{operation}", times, lambda **_: (SimpleNamespace(status_code=400), said))


def refuse(service: Service, code: Callable[[Any], str]) -> None:
    """The next transaction is refused, each write for its own reason; a condition tells what stands there."""

    def said(params: Any, **_: Any) -> Any:
        reasons = [_reason(service, code(write), write) for write in json.loads(params["body"])["TransactItems"]]
        error = {"Code": "TransactionCanceledException", "Message": "for several reasons"}
        meta = {"HTTPHeaders": {"x-amzn-requestid": "0"}}
        parsed = {"Error": error, "CancellationReasons": reasons, "ResponseMetadata": meta}
        return SimpleNamespace(status_code=400), parsed

    _next_times(service, "before-call.dynamodb.TransactWriteItems", 1, said)


def _reason(service: Service, code: str, write: Any) -> dict[str, Any]:
    if code != CONDITION:
        return {"Code": code}
    ((_, what),) = write.items()
    key = {name: what["Item"][name] for name in ("pk", "sk")}
    return {"Code": code, "Item": service.ask("get_item", TableName=what["TableName"], Key=key)["Item"]}


def answer(service: Service, operation: str, times: int, change: Callable[[Any], None]) -> None:
    """The next answers are changed on their way."""
    _next_times(service, f"after-call.*.{operation}", times, lambda parsed, **_: change(parsed))


def forget_tokens(service: Service) -> None:
    """Every transaction that is sent is a new one to the server, as it is after ten minutes."""

    def renamed(params: Any, **_: Any) -> None:
        body = json.loads(params["body"])
        params["body"] = json.dumps({**body, "ClientRequestToken": secrets.token_hex(8)}).encode()

    hook(service, "before-call.dynamodb.TransactWriteItems", renamed)


def _next_times(service: Service, event: str, times: int, do: Callable[..., Any]) -> None:
    left = iter(range(times))
    hook(service, event, lambda **given: None if next(left, None) is None else do(**given))
