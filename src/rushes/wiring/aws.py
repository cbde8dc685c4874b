"""A fleet on DynamoDB, SQS and S3; the index is a local file of the process that searches."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from rushes.aws.table import Table
from rushes.domain.errors import Refused
from rushes.index.port import Index
from rushes.index.sqlite import SqliteIndex
from rushes.ledger.dynamodb import DynamoLedger
from rushes.ledger.port import Ledger
from rushes.ledger.process import is_gone_from_here
from rushes.records.dynamodb import DynamoRecords
from rushes.records.port import Records
from rushes.settings import Settings
from rushes.transport.port import Describe, Transport
from rushes.transport.sqs import SqsHints
from rushes.wiring.aws_client import service_of
from rushes.wiring.setup import Setup, hints_of

LONG_POLL_SECONDS = 25.0
_NAME = re.compile(r"[A-Za-z0-9_-]{3,50}\Z")  # of a table; queues are called rushes-NAME-LANE-dlq, with at most 80
_NAME_HINT = "Write dynamodb://NAME with 3 to 50 letters, digits, dashes or underscores; queues are named after it."


class AwsSetup(Setup):
    """One table, a queue for each lane, one bucket."""

    def __init__(self, settings: Settings, home: Path) -> None:
        """Raises Refused: DynamoDB or SQS would not take the name, one of them after the other was made."""
        super().__init__(settings, home)
        self._name = settings.store.removeprefix("dynamodb://").strip("/")
        if not _NAME.match(self._name):
            raise Refused(f"{self._name!r} is not a valid table name", _NAME_HINT)

    @cached_property
    def _table(self) -> Table:
        table = Table(service_of(self._settings, "dynamodb"), self._name)
        table.create()
        return table

    def ledger(self) -> Ledger:
        """Items of the table."""
        return DynamoLedger(self._table, is_gone=is_gone_from_here)

    def records(self) -> Records:
        """Items of the table."""
        return DynamoRecords(self._table)

    def index(self) -> Index:
        """SQLite beside this process."""
        return SqliteIndex(self._index_file)

    def transport(self, lanes: Sequence[str], describe: Describe) -> Transport:
        """Redis if it is named, else a queue for each lane."""
        if self._settings.hints:
            return hints_of(self._settings, describe)
        service, wait = service_of(self._settings, "sqs", LONG_POLL_SECONDS), self._settings.sqs_wait_seconds
        queues = SqsHints(service, self._name, wait_seconds=wait)
        queues.create(lanes)
        return queues

    def snapshots(self, _ledger: Ledger, _records: Records, /) -> Mapping[str, Callable[[Path], None]]:
        """The server has its own backup."""
        raise Refused(
            "this home's ledger is a DynamoDB table; rushes backup does not copy it",
            "Use point-in-time recovery for the table and versioning for the bucket: see docs/guides/run-on-aws.md.",
        )

    def check_schema(self, _ledger: Ledger, /) -> None:
        """Items have no schema."""

    def unprotected(self) -> Sequence[str] | None:
        """What DynamoDB says of the table."""
        return self._table.unprotected()

    def migrate(self, *, check: bool = False) -> tuple[str, ...]:  # noqa: ARG002 - there is nothing to do
        """Items have no schema."""
        return ()

    def clock(self) -> float:
        """By the date of an answer, which has whole seconds."""
        service = service_of(self._settings, "dynamodb")
        service.ask("describe_table", TableName=self._name)
        now = service.wall_millis() / 1000
        service.close()
        return now
