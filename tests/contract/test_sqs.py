"""What is SQS's own: messages doubled, reordered, dropped, poisoned, kept and settled; the ledger is never misled."""

import contextlib
import json
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_kit
import pytest
from ledger_kit import claim, done, film, new_job, opened, worker
from tests.otlp_receiver import collecting
from tests.servers_aws import KEY, SECRET

from rushes import tracing
from rushes.aws.client import Service
from rushes.domain.job import JobState
from rushes.jobs.control import announce_missing
from rushes.ledger.dynamodb import DynamoLedger
from rushes.transport.sqs import VISIBLE_AFTER_SECONDS, SqsHints
from rushes.wiring import open_home

LONG = 120.0
NEW = new_job()
TASKS = 24


class Moving:
    """A clock that tests move."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def service() -> Iterator[Service]:
    service = aws_kit.breakable("sqs")
    yield service
    aws_kit.mend(service)


@pytest.fixture
def clock() -> Moving:
    return Moving()


@pytest.fixture
def hints(service: Service, clock: Moving) -> SqsHints:
    return aws_kit.hints(using=service, clock=clock)


def raw(hints: SqsHints, body: str, lane: str = "cpu") -> None:
    hints._service.ask("send_message", QueueUrl=hints._url(lane), MessageBody=body)


def left(hints: SqsHints, lane: str = "cpu") -> int:
    """Messages of a queue, seen or not."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = hints._service.ask("get_queue_attributes", QueueUrl=hints._url(lane), AttributeNames=names)["Attributes"]
    return sum(map(int, found.values()))


def twice(hints: SqsHints, tasks: list[str]) -> None:
    for _ in range(3):
        hints.announce("cpu", tasks)


def shuffled(hints: SqsHints, tasks: list[str]) -> None:
    mixed = random.Random(7).sample(tasks, len(tasks))
    for task in mixed:
        hints.announce("cpu", [task])


def with_gaps(hints: SqsHints, tasks: list[str]) -> None:
    hints.announce("cpu", tasks[::3])


def not_at_all(hints: SqsHints, tasks: list[str]) -> None:
    """Every message is lost."""


@pytest.mark.parametrize("sent", [twice, shuffled, with_gaps, not_at_all])
def test_whatever_becomes_of_the_messages_every_task_is_done_once(
    hints: SqsHints, tmp_path: Path, sent: Callable[[SqsHints, list[str]], None]
) -> None:
    ledger = DynamoLedger(aws_kit.table(tmp_path))
    ran: Counter[str] = Counter()  # the witness
    sent(hints, list(opened(ledger, NEW, film(NEW, TASKS))))
    worker(ledger)
    for _ in range(100):
        if ledger.job(NEW.id).state is JobState.COMPLETED:
            break
        hinted = hints.wait(["cpu"], 0, 10)
        if not hinted:
            announce_missing(ledger, hints, lambda _: "cpu", ledger.sweep().ready)
            continue
        leases = claim(ledger, n=10, hinted=hinted)
        ran.update(lease.task for lease in leases)
        hints.announce("cpu", ledger.complete("w1", [done(lease) for lease in leases]).ready)
        hints.settle(hinted)
    assert ran == Counter(d.id for d in film(NEW, TASKS))
    assert ledger.job(NEW.id).state is JobState.COMPLETED
    hints.settle(hints.wait(["cpu"], 0, 10))


def test_a_hint_says_what_other_tools_ask_for(hints: SqsHints) -> None:
    hints.announce("gpu", ["job_a.hear.00001"])
    (message,) = hints._service.ask("receive_message", QueueUrl=hints._url("gpu"))["Messages"]
    assert json.loads(message["Body"]) == {
        "job_id": "job_a",
        "queue": "gpu",
        "attempt": 1,
        "task_id": "job_a.hear.00001",
    }


@pytest.mark.parametrize("body", ["hello", "[]", "{", '{"Event": "s3:TestEvent"}', '{"task_id": 7}', "null"])
def test_a_message_that_is_no_hint_is_deleted_and_counted(hints: SqsHints, body: str) -> None:
    raw(hints, body)
    assert hints.wait(["cpu"], 0) == ()
    hints.announce("cpu", ["a"])
    assert hints.wait(["cpu"], LONG) == ("a",)
    assert (hints.poison, left(hints)) == (1, 1)


def test_settled_messages_are_deleted_ten_at_once(hints: SqsHints, service: Service) -> None:
    tasks = [f"t{n}" for n in range(10)]
    hints.announce("cpu", tasks)
    assert sorted(hints.wait(["cpu"], LONG, 10)) == tasks
    for task in tasks:
        assert service.requests["delete_message_batch"] == 0
        hints.settle([task])
    assert (service.requests["delete_message_batch"], left(hints)) == (1, 0)


def test_settled_messages_do_not_wait_for_ever(hints: SqsHints, clock: Moving) -> None:
    hints.announce("cpu", ["a"])
    hints.announce("gpu", ["b"])
    hints.wait(["cpu"], LONG)
    hints.settle(["a"])
    clock.now += 60
    hints.wait(["gpu"], LONG)
    assert left(hints) == 0


def test_a_message_is_held_back_again_when_half_of_its_time_is_over(
    hints: SqsHints, service: Service, clock: Moving
) -> None:
    hints.announce("cpu", ["a"])
    hints.wait(["cpu"], LONG)
    hints.keep(["a"])
    assert service.requests["change_message_visibility_batch"] == 0
    clock.now += VISIBLE_AFTER_SECONDS / 2
    hints.keep(["a", "unknown"])
    hints.keep(["a"])
    assert service.requests["change_message_visibility_batch"] == 1


def test_what_a_worker_took_and_did_not_settle_is_there_for_others_when_it_leaves(hints: SqsHints) -> None:
    hints.announce("cpu", ["a", "b"])
    taken: set[str] = set()
    while len(taken) < 2:
        taken |= set(hints.wait(["cpu"], LONG))
    hints.settle(["a"])
    hints.close()
    other = aws_kit.hints(hints._env, hints._service)
    assert other.wait(["cpu"], LONG) == ("b",)


def test_a_receipt_that_is_no_longer_good_hurts_nobody(hints: SqsHints) -> None:
    hints.announce("cpu", ["a"])
    hints.wait(["cpu"], LONG)
    url = hints._url("cpu")
    hints._service.ask("purge_queue", QueueUrl=url)
    hints.settle(["a"])
    hints.close()
    assert hints.wait(["cpu"], 0) == ()


def test_a_message_that_comes_when_nobody_waits_any_more_is_left_for_others(hints: SqsHints) -> None:
    assert hints.wait(["cpu"], 0.05) == ()
    hints.announce("cpu", ["a"])  # perhaps received by the request that is still under way
    other = aws_kit.hints(hints._env, hints._service)
    assert other.wait(["cpu"], LONG) == ("a",)


class Counted:
    """A service without messages whose first answer comes when the test lets it."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.waited, self.again, self.go_on = threading.Event(), threading.Event(), threading.Event()

    def ask(self, operation: str, **request: Any) -> Any:
        if operation == "receive_message":
            self.asked.append(request["WaitTimeSeconds"])
            (self.again if self.waited.is_set() else self.waited).set()
            assert self.go_on.wait(LONG)
        return {"QueueUrl": "queue"}


def test_whoever_waits_again_while_a_request_is_under_way_is_waited_for_as_long() -> None:
    service: Any = Counted()
    hints = SqsHints(service)
    assert hints.wait(["cpu"], 0.01) == ()
    assert service.waited.wait(LONG)
    waits = threading.Thread(target=hints.wait, args=(["cpu"], LONG))
    waits.start()
    while not hints._waits["cpu"]:
        time.sleep(0.001)
    service.go_on.set()
    assert service.again.wait(LONG)
    hints.wake()
    waits.join(LONG)
    assert service.asked[:2] == [1, 20], "a request each second, for as long as it is idle"


def test_hints_that_are_all_gone_are_missing(hints: SqsHints) -> None:
    assert hints.missing("cpu", ["a", "b"]) == ("a", "b")
    hints.announce("cpu", ["a"])
    assert hints.missing("cpu", ["a", "b"]) == ()
    hints.wait(["cpu"], LONG)
    assert hints.missing("cpu", ["b"]) == ("b",)  # what somebody holds is no hint to others


def test_a_service_that_is_away_raises_nothing_and_ends_in_time() -> None:
    hints = SqsHints(aws_kit.service("sqs", "http://127.0.0.1:9", patience=0.1))
    hints.announce("cpu", ["a"])
    assert hints.missing("cpu", ["a"]) == ()
    assert hints.wait(["cpu"], 0) == hints.wait(["cpu", "now"], 0.05) == ()
    hints.keep(["a"])
    hints.settle(["a"])
    hints.close()


def test_queues_are_made_with_what_the_contract_says(hints: SqsHints) -> None:
    said: Any = hints._service.ask("get_queue_attributes", QueueUrl=hints._url("cpu"), AttributeNames=["All"])
    found = said["Attributes"]
    assert (found["VisibilityTimeout"], found["ReceiveMessageWaitTimeSeconds"]) == ("300", "20")
    assert found["MessageRetentionPeriod"] == str(14 * 86_400)
    assert json.loads(found["RedrivePolicy"])["maxReceiveCount"] in (3, "3")
    hints.create(["cpu"])  # again: what is there stays


def test_a_queue_that_an_operator_changed_is_used_as_it_is(hints: SqsHints) -> None:
    changed = {"VisibilityTimeout": "600"}
    for lane in ("cpu", "cpu-dlq"):
        hints._service.ask("set_queue_attributes", QueueUrl=hints._url(lane), Attributes=changed)
    hints.create(["cpu"])
    said: Any = hints._service.ask("get_queue_attributes", QueueUrl=hints._url("cpu"), AttributeNames=["All"])
    assert said["Attributes"]["VisibilityTimeout"] == "600"


def test_a_queue_with_dead_letters_elsewhere_needs_nothing_to_be_made(service: Service) -> None:
    env = secrets.token_hex(4)
    service.ask("create_queue", QueueName=f"rushes-{env}-cpu")
    before = service.requests["create_queue"]
    SqsHints(service, env).create(["cpu"])
    assert service.requests["create_queue"] == before, "a worker that may not make queues could not begin"


def test_a_stage_in_a_lane_of_its_own_has_its_queue(tmp_path: Path) -> None:
    where = f'aws_endpoint = "{aws_kit.server().url}"\ns3_key = "{KEY}"\ns3_secret = "{SECRET}"\n'
    (tmp_path / "rushes.toml").write_text(f'store = "dynamodb://{secrets.token_hex(4)}"\n{where}')
    home = open_home(tmp_path)
    home.__dict__["specs"] = {**home.specs, "fold": replace(home.specs["probe"], lane="tpu")}
    with contextlib.closing(home.transport) as hints:
        hints.announce("tpu", ["job_1.fold"])
        assert hints.wait(["tpu"], LONG) == ("job_1.fold",)


def test_a_hint_carries_the_trace_of_its_job(service: Service, clock: Moving, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        tracing.start("test")
        try:
            one = aws_kit.hints(using=service, clock=clock)
            other = aws_kit.hints(one._env, clock=clock)
            with tracing.span("job.submit", f"00-{trace}-b7ad6b7169203331-01"):
                one.announce("cpu", ["job_a.probe"])
                context = tracing.current()
            tracing.begin_task("job_b.probe", context, {})
            one.announce("cpu", ["job_b.develop.00000"])  # by a worker, while nothing is recorded
            one.announce("cpu", ["job_c.probe"])  # of a job without a trace
            raw(one, '{"task_id": "job_d.probe", "traceparent": ["no", "context"]}')
            found: set[str] = set()
            while len(found) < 4:
                found |= {*other.wait(["cpu"], LONG)}
            one.close()
            other.close()
        finally:
            tracing.stop()
    spans = [span for span in collector.spans if span.trace == trace]
    assert {span.trace for span in collector.spans} == {trace}
    received = {span.about["rushes.task"] for span in spans if span.name == "sqs.receive"}
    assert received == {"job_a.probe", "job_b.develop.00000"}
    (sent,) = [span for span in spans if span.name == "sqs.send_message_batch"]
    assert (sent.about["rushes.queue"], sent.about["rushes.count"]) == (f"rushes-{one._env}-cpu", "1")
