"""Requests and money per task on DynamoDB + SQS, counted at the client on the product's own verbs, ten slots free.

The emulator only answers; what is counted does not depend on its speed, so what a worker does by time and not by task
(a renewal each 10 s, a sweep) is left out. Two ways: all ten are done at once, or each task is completed by itself
(hints are still sent, taken and deleted in tens). Prices from memory, us-east-1.
"""

import argparse
import contextlib
import secrets
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.servers_aws import KEY, SECRET, make_bucket, ministack

from benchmarks.idle import cleared_up
from rushes.aws.client import Service
from rushes.aws.table import INDEXES, Table
from rushes.domain.job import NewJob
from rushes.domain.keys import job_id, task_id
from rushes.domain.result import Result
from rushes.domain.task import Draft, Finish, Lease, Need
from rushes.domain.worker import Incarnation
from rushes.ledger.dynamodb import DynamoLedger
from rushes.library.work.workers import HomeWorker
from rushes.servers.process import Running
from rushes.transport.sqs import SqsHints
from rushes.wiring import open_home

BARS = {"tens": 0.6, "alone": 1.5}
IDLE_BAR = 20
SETTLE_SECONDS = 100.0  # the first looks and sweeps are over
SLOTS = 10
SPEC = '{"stage": "noop", "options": {"every_ms": 100}, "span": [0, 60], "note": "%s"}' % ("x" * 40)
SQS_PRICE, WRITE_PRICE, READ_PRICE = 0.40, 0.625, 0.125  # dollars per million requests, write units, read units


@dataclass(slots=True)
class Meter:
    """Units that DynamoDB would bill, by its rules: a unit per KB written, two in a transaction, indexes apart."""

    written: float = 0.0
    read: float = 0.0
    listed: dict[str, set[str]] = field(default_factory=dict)  # item -> its entries in indexes

    def on(self, service: Service) -> None:
        """Look at every request and answer."""
        service.events.register("before-parameter-build.dynamodb.*", self._asked)
        service.events.register("after-call.dynamodb.*", self._answered)

    def _asked(self, params: Any, model: Any, **_: Any) -> None:
        if model.name == "TransactWriteItems":
            for write in params["TransactItems"]:
                item = next(iter(write.values())).get("Item", {})
                self.written += 2 * _kilobytes(item) + self._moved(item)
        elif model.name == "BatchWriteItem":
            puts = [w.get("PutRequest", {}).get("Item", {}) for some in params["RequestItems"].values() for w in some]
            self.written += sum(map(_kilobytes, puts))

    def _answered(self, parsed: Any, model: Any, **_: Any) -> None:
        if model.name == "BatchExecuteStatement":
            for item in [one["Item"] for one in parsed["Responses"] if "Item" in one]:
                self.written += _kilobytes(item) + self._moved(item)
        elif model.name == "UpdateItem":
            self.written += 1
        elif model.name in ("Query", "BatchGetItem"):
            found = parsed.get("Items", []) + [i for some in parsed.get("Responses", {}).values() for i in some]
            self.read += max(1.0, sum(map(_size, found)) / 4096)

    def _moved(self, item: dict[str, Any]) -> int:
        """Entries that indexes lose and gain: an item whose place in a list changes is taken out and put in."""
        if not item:
            return 0
        now = {str((item[part], item[sort])) for part, sort in INDEXES.values() if part in item}
        before = self.listed.get(str((item["pk"], item["sk"])), set())
        self.listed[str((item["pk"], item["sk"]))] = now
        return len(now ^ before)


def _kilobytes(item: dict[str, Any]) -> int:
    return max(1, -(-_size(item) // 1024))


def _size(item: dict[str, Any]) -> int:
    return sum(len(name) + len(str(next(iter(value.values())))) for name, value in item.items())


def plan(job: str, chunks: int) -> list[Draft]:
    """Every chunk needs probe, the join needs every chunk."""
    probe = Need(task_id(job, "probe", None))
    parts = [Draft(task_id(job, "noop", n), job, "noop", n, SPEC, "cpu", n + 1, (probe,)) for n in range(chunks)]
    needs = tuple(Need(part.id) for part in parts)
    return [*parts, Draft(task_id(job, "join", None), job, "join", None, SPEC, "cpu", chunks + 1, needs)]


def film(ledger: DynamoLedger, hints: SqsHints, chunks: int, alone: bool) -> int:
    """One job from its submission to its end, as a worker with ten slots works it off; how many tasks it had."""
    job = job_id("bench", secrets.token_hex(8))
    first = Draft(task_id(job, "probe", None), job, "probe", None, SPEC, "cpu")
    ledger.submit(NewJob(job, "bench", job, "film.mp4", "bench", "{}"), first)
    hints.announce("cpu", [first.id])
    done = 0
    while done < chunks + 2:
        hinted = hints.wait(["cpu"], 0, SLOTS)
        leases = ledger.claim("bench", ["cpu"], SLOTS, hinted)
        for lease in leases:
            if lease.stage == "probe":
                ledger.draft(job, lease.task, lease.fence, plan(job, chunks), "{}")
        for part in [[lease] for lease in leases] if alone else [leases]:
            hints.announce("cpu", ledger.complete("bench", [_finish(lease) for lease in part]).ready)
            hints.settle([lease.task for lease in part])
        done += len(leases)
    return done


def _finish(lease: Lease) -> Finish:
    return Finish(
        lease.task, lease.fence, (Result(f"{lease.task}-{'0' * 20}", "frames", "ab" * 32, 1, 1),), seconds=1.0
    )


def count(url: str, films: int, chunks: int, alone: bool) -> tuple[int, Counter[str], Meter]:
    """Work off some films; tasks, requests by operation, units."""
    dynamodb = Service("dynamodb", url, "us-east-1", KEY, SECRET)
    sqs = Service("sqs", url, "us-east-1", KEY, SECRET, answer_seconds=25.0)
    table, hints, meter = Table(dynamodb, prefix=secrets.token_hex(4)), SqsHints(sqs, secrets.token_hex(4)), Meter()
    table.create()
    hints.create(["cpu"])
    ledger = DynamoLedger(table, clock=lambda: 0.0)  # no lease runs out here
    ledger.renew(Incarnation("bench", "h", "b", 1, "1"), {}, {})
    for service in (dynamodb, sqs):
        service.requests.clear()
    meter.on(dynamodb)
    tasks = sum(film(ledger, hints, chunks, alone) for _ in range(films))
    hints.close()
    return tasks, dynamodb.requests + Counter({f"sqs {name}": n for name, n in sqs.requests.items()}), meter


def idle(running: Running, folder: Path, seconds: float) -> Counter[str]:
    """What a worker asks of DynamoDB and SQS that has nothing to do, once it has settled."""
    seen: Counter[str] = Counter()
    ask = Service.ask

    def counted(service: Service, operation: str, *args: Any, **request: Any) -> Any:
        seen[operation] += 1
        return ask(service, operation, *args, **request)

    make_bucket(running.url, "idle")
    ends = f's3_endpoint = "{running.url}"\naws_endpoint = "{running.url}"\ns3_key = "{KEY}"\ns3_secret = "{SECRET}"\n'
    (folder / "rushes.toml").write_text(
        f'store = "dynamodb://idle-{secrets.token_hex(4)}"\nblobs = "s3://idle"\n{ends}'
    )
    with patch.object(Service, "ask", counted), contextlib.closing(open_home(folder)) as home:
        for lane in ("cpu", "now"):  # a store that was used knows its lanes
            job = job_id("bench", lane)
            first = Draft(task_id(job, "noop", None), job, "noop", None, SPEC, lane, adopted=True)
            home.ledger.submit(NewJob(job, "bench", lane, "film.mp4", "bench", "{}"), first)
        cleared_up(home)
        shell = HomeWorker(home).shell
        thread = threading.Thread(target=shell.run)
        thread.start()
        time.sleep(SETTLE_SECONDS)
        seen.clear()
        time.sleep(seconds)
        found = Counter({name: n * 60 / seconds for name, n in seen.items()})
        shell.request_stop()
        thread.join()
    return found


def _print_idle(found: Counter[str]) -> bool:
    print(f"idle: {found.total():.1f} requests a minute (at most {IDLE_BAR})")
    for name, n in found.most_common():
        print(f"  {name:32} {n:.1f}")
    return found.total() > IDLE_BAR


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--idle", action="store_true", help="what an idle worker asks for in some minutes")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--films", type=int, default=2)
    parser.add_argument("--chunks", type=int, default=480)
    chosen = parser.parse_args(argv)
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        running = ministack(Path(folder))
        try:
            if chosen.idle:
                return int(_print_idle(idle(running, Path(folder), 60 * chosen.minutes)))
            for way, bar in BARS.items():
                tasks, requests, meter = count(running.url, chosen.films, chosen.chunks, way == "alone")
                missed += _print(way, bar, tasks, requests, meter)
        finally:
            running.stop()
    return 1 if missed else 0


def _print(way: str, bar: float, tasks: int, requests: Counter[str], meter: Meter) -> bool:
    each = requests.total() / tasks
    sqs = sum(n for name, n in requests.items() if name.startswith("sqs"))
    dollars = (sqs * SQS_PRICE + meter.written * WRITE_PRICE + meter.read * READ_PRICE) / tasks
    print(f"{way}: {each:.3f} requests a task (at most {bar}), {meter.written / tasks:.1f} write units, ", end="")
    print(f"{meter.read / tasks:.2f} read units, ${dollars:.2f} per million tasks ({tasks} tasks)")
    for name, n in requests.most_common():
        print(f"  {name:32} {n / tasks:.4f}")
    return each > bar


if __name__ == "__main__":
    sys.exit(main())
