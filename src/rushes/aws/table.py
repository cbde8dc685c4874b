"""One DynamoDB table: items as plain dicts, whole batches, transactions; expired items are hidden."""

import itertools
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rushes.aws.client import CONDITION, ConditionFailed, Service
from rushes.domain.errors import NotAllowed, RushesError, StoreAway, WrongHome
from rushes.metrics import PROCESS
from rushes.telemetry import log

Value = str | int | bool
Item = dict[str, Value]
Key = tuple[str, str]
Write = dict[str, Any]

TRANSACTION = 90  # items, of 100 that DynamoDB allows
INDEXES = {
    "by_list": ("list_name", "rank"),  # what waits, is held, is due, is owed
    "by_owner": ("of_owner", "age"),
    "by_state": ("of_state", "since"),
    "by_change": ("of_change", "changed_at"),
}
_PARTS = frozenset({"pk", *(part for part, _ in INDEXES.values())})
_LAST = "\U0010ffff"
_ROUNDS = 20
OVERLAP_MILLIS = 60_000  # longer than any write is under way
_CHANGES = 1000  # rows in one answer of `changed_keys`


class Table:
    """The table, or the part of it whose partitions begin with `prefix`."""

    def __init__(
        self, service: Service, name: str = "rushes", prefix: str = "", wall: Callable[[], int] | None = None
    ) -> None:
        """`wall` is the service's clock (in milliseconds) by default."""
        self.service, self.name, self._prefix = service, name, prefix
        self.wall = wall or service.wall_millis

    # Reading
    def fetch(self, keys: Iterable[Key]) -> dict[Key, Item]:
        """The items that are there; each as it is now."""
        wanted = list(dict.fromkeys(keys))
        found: dict[Key, Item] = {}
        for begin in range(0, len(wanted), 100):
            some = {"Keys": [self._key(key) for key in wanted[begin : begin + 100]], "ConsistentRead": True}
            for answer in self._ask_until_done("batch_get_item", some, "UnprocessedKeys"):
                found |= {key_of(item): item for item in self._unexpired(answer["Responses"].get(self.name, ()))}
        return found

    def query(
        self, part: str, low: str = " ", high: str = _LAST, *, index: str = "", limit: int = 0, newest: bool = False
    ) -> Iterator[Item]:
        """Items of a partition, from low to high (both included), in order; those of an index may be a moment old."""
        first, second = INDEXES.get(index, ("pk", "sk"))
        request: dict[str, Any] = {
            "TableName": self.name,
            "KeyConditionExpression": "#p = :p AND #s BETWEEN :low AND :high",
            "ExpressionAttributeNames": {"#p": first, "#s": second},
            "ExpressionAttributeValues": _encoded({":p": self._prefix + part, ":low": low, ":high": high}),
            "ScanIndexForward": not newest,
            **({"IndexName": index} if index else {"ConsistentRead": True}),
            **({"Limit": limit} if limit else {}),
        }
        left = limit or -1
        while request:
            answer = self.service.ask("query", **request)
            for item in self._unexpired(answer["Items"]):
                yield item
                left -= 1
                if left == 0:
                    return
            more = answer.get("LastEvaluatedKey")
            request = {**request, "ExclusiveStartKey": more} if more else {}

    # Writing
    def save(self, items: Iterable[Item] = (), gone: Iterable[Key] = ()) -> None:
        """Write and delete without conditions, in batches of 25; what was left unprocessed is sent again."""
        writes = [{"PutRequest": {"Item": self._encoded(item)}} for item in items]
        writes += [{"DeleteRequest": {"Key": self._key(key)}} for key in gone]
        for begin in range(0, len(writes), 25):
            list(self._ask_until_done("batch_write_item", writes[begin : begin + 25], "UnprocessedItems"))

    def commit(self, writes: Sequence[Write]) -> None:
        """All of these or none; the same request sent again (a reply was cut) counts once.

        Raises:
            TransactionCancelled: some condition did not hold.
        """
        try:
            self.service.ask(
                "transact_write_items", TransactItems=list(writes), ClientRequestToken=secrets.token_hex(16)
            )
        except ConditionFailed as e:
            raise TransactionCancelled(self._found(writes, e.reasons)) from e

    def put(self, item: Item, rev: int | None) -> Write:
        """A write of an item that must have that revision now (None: must not be there)."""
        write: Write = {"TableName": self.name, "Item": self._encoded(item), **_expect(rev)}
        return {"Put": write}

    def drop(self, key: Key, rev: int) -> Write:
        """A deletion of an item that must have that revision now."""
        return {"Delete": {"TableName": self.name, "Key": self._key(key), **_expect(rev)}}

    def once(self, key: Key, name: str, value: Value) -> Write:
        """A write of one attribute, unless it is there already."""
        return {
            "Update": {
                "TableName": self.name,
                "Key": self._key(key),
                "UpdateExpression": "SET #a = if_not_exists(#a, :a)",
                "ExpressionAttributeNames": {"#a": name},
                "ExpressionAttributeValues": _encoded({":a": value}),
            }
        }

    def number(self, key: Key) -> int:
        """The next number of a counter; none comes twice, some may be left out."""
        answer = self.service.ask(
            "update_item",
            TableName=self.name,
            Key=self._key(key),
            UpdateExpression="ADD #n :one",
            ExpressionAttributeNames={"#n": "n"},
            ExpressionAttributeValues=_encoded({":one": 1}),
            ReturnValues="UPDATED_NEW",
        )
        return int(answer["Attributes"]["n"]["N"])

    def update(
        self, key: Key, sets: Mapping[str, Value], counts: Sequence[str], where: Mapping[str, Sequence[str]]
    ) -> Write:
        """A statement for `execute`: set these, count those up by one, if each of `where` has one of its values."""
        changes = [f'SET "{name}"=?' for name in sets] + [f'SET "{name}"="{name}"+1' for name in counts]
        conditions = [f'"{name}" IN [{",".join("?" * len(values))}]' for name, values in where.items()]
        where_ = " AND ".join(['"pk"=? AND "sk"=?', *conditions])
        pairs = [*sets.items(), ("pk", key[0]), ("sk", key[1])]
        pairs += [(name, value) for name, some in where.items() for value in some]
        text = f'UPDATE "{self.name}" {" ".join(changes)} WHERE {where_} RETURNING ALL NEW *'
        return {"Statement": text, "Parameters": [_typed(self._with_prefix(*pair)) for pair in pairs]}

    def execute(self, statements: Sequence[Write]) -> list[Item]:
        """Up to 25 updates, each by itself; the items that were changed, as they are now. Sent only once."""
        answer = self.service.ask("batch_execute_statement", once=True, Statements=list(statements))
        for one in answer["Responses"]:
            code = one.get("Error", {}).get("Code", "")
            if code not in ("", "ConditionalCheckFailed", "TransactionConflict", "ThrottlingError"):
                raise RushesError(f"DynamoDB refused: {one['Error']}")
        return list(self._unexpired(one["Item"] for one in answer["Responses"] if "Item" in one))

    # Creating
    def create(self) -> None:
        """Create the table, billed by request and protected against loss, unless it exists."""
        try:
            self.service.ask("describe_table", TableName=self.name)
        except WrongHome:
            self._create()
            self._protect()

    def unprotected(self) -> tuple[str, ...]:
        """What of the protection against loss is off: a table that was restored has none of it.

        Raises:
            NotAllowed: this role may not ask.
        """
        table = self.service.ask("describe_table", TableName=self.name)["Table"]
        backups = self.service.ask("describe_continuous_backups", TableName=self.name)["ContinuousBackupsDescription"]
        ttl = self.service.ask("describe_time_to_live", TableName=self.name)["TimeToLiveDescription"]
        recovery = backups.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus")
        on = {
            "deletion protection": bool(table.get("DeletionProtectionEnabled")),
            "point-in-time recovery": recovery == "ENABLED",
            "time to live": ttl.get("TimeToLiveStatus") in ("ENABLED", "ENABLING"),
        }
        return tuple(name for name, is_on in on.items() if not is_on)

    def _create(self) -> None:
        names = {"pk", "sk", *(name for pair in INDEXES.values() for name in pair)}
        self.service.ask(
            "create_table",
            TableName=self.name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in sorted(names)],
            KeySchema=_schema("pk", "sk"),
            GlobalSecondaryIndexes=[
                {"IndexName": name, "KeySchema": _schema(*pair), "Projection": {"ProjectionType": "KEYS_ONLY"}}
                for name, pair in INDEXES.items()
            ],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
            DeletionProtectionEnabled=True,
        )
        self.service.wait_for("table_exists", TableName=self.name)

    def _protect(self) -> None:
        """Each by itself: a role that may only create makes a table that works, and doctor says what is off."""
        ttl, recovery = {"Enabled": True, "AttributeName": "expires"}, {"PointInTimeRecoveryEnabled": True}
        asks: dict[str, dict[str, Any]] = {
            "update_time_to_live": {"TimeToLiveSpecification": ttl},
            "update_continuous_backups": {"PointInTimeRecoverySpecification": recovery},
        }
        for operation, more in asks.items():
            try:
                self.service.ask(operation, TableName=self.name, **more)
            except NotAllowed as e:
                log.warning("table %s was created, but %s was refused: %s", self.name, operation, e)

    def _ask_until_done(self, operation: str, wanted: Any, unprocessed: str) -> Iterator[Any]:
        """The answers to a batch; what was left unprocessed is sent again."""
        left = {self.name: wanted}
        for _ in range(_ROUNDS):
            answer = self.service.ask(operation, RequestItems=left)
            yield answer
            left = answer.get(unprocessed)
            if not left:
                return
            PROCESS.add("rushes_dynamodb_batch_retries_total")
        raise StoreAway(f"DynamoDB did not process all of a {operation}")

    def _found(self, writes: Sequence[Write], reasons: Sequence[Any]) -> dict[Key, Item | None]:
        """What is there; a write that met another transaction or a limit tells nothing of its item."""
        found: dict[Key, Item | None] = {}
        for write, reason in zip(writes, reasons, strict=True):
            if reason.get("Code") == CONDITION:
                (what,) = write.values()
                key = key_of(self._decoded(what.get("Item") or what["Key"]))
                found[key] = self._decoded(reason["Item"]) if reason.get("Item") else None
        return found

    def _unexpired(self, items: Iterable[Any]) -> Iterator[Item]:
        """DynamoDB removes what has expired days later, or never."""
        now = self.wall() // 1000
        return (item for item in map(self._decoded, items) if int(item.get("expires", now + 1)) > now)

    def _key(self, key: Key) -> Any:
        return _encoded({"pk": self._prefix + key[0], "sk": key[1]})

    def _with_prefix(self, name: str, value: Value) -> Value:
        return self._prefix + str(value) if name in _PARTS else value

    def _encoded(self, item: Item) -> Any:
        return _encoded({name: self._with_prefix(name, value) for name, value in item.items()})

    def _decoded(self, item: Mapping[str, Any]) -> Item:
        cut = len(self._prefix)
        return {name: _plain(v)[cut:] if name in _PARTS else _plain(v) for name, v in item.items()}


class TransactionCancelled(Exception):
    """Nothing was written; `found` are the items whose conditions did not hold (None: it is not there)."""

    def __init__(self, found: dict[Key, Item | None]) -> None:
        super().__init__("a transaction was cancelled")
        self.found = found


def key_of(item: Item) -> Key:
    """Where an item is."""
    return str(item["pk"]), str(item["sk"])


def _expect(rev: int | None) -> dict[str, Any]:
    expected: dict[str, Any] = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    if rev is None:
        return expected | {"ConditionExpression": "attribute_not_exists(#k)", "ExpressionAttributeNames": {"#k": "pk"}}
    names, values = {"#r": "rev"}, _encoded({":r": rev})
    condition = {"ConditionExpression": "#r = :r", "ExpressionAttributeNames": names}
    return expected | condition | {"ExpressionAttributeValues": values}


def _schema(part: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": part, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


def _encoded(item: Mapping[str, Value]) -> dict[str, Any]:
    return {name: _typed(value) for name, value in item.items()}


def _typed(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"BOOL": value}
    return {"N": str(value)} if isinstance(value, int) else {"S": value}


def _plain(value: Mapping[str, Any]) -> Any:
    ((kind, plain),) = value.items()
    return int(plain) if kind == "N" else plain


class Timestamps:
    """Times of one process, each later than the one before."""

    def __init__(self, wall: Callable[[], int]) -> None:
        self._wall, self._numbers = wall, itertools.count()

    def next(self) -> str:
        """Milliseconds and a number."""
        return f"{self._wall():015d}.{next(self._numbers):09d}"


def changed_keys(table: Table, part: str, cursor: str) -> tuple[list[Key], str]:
    """Rows that changed since, in order, and the next cursor; call again until there are none.

    A writer that began earlier may be listed later; so the last minute is read again, without what was answered before.
    """
    at, known = json.loads(cursor) if cursor else (0, {})
    found: dict[Key, str] = {}
    for item in table.query(part, f"{max(0, at - OVERLAP_MILLIS):015d}", index="by_change"):
        key, when = key_of(item), str(item["changed_at"])
        if known.get("\n".join(key)) != when:
            found[key] = when
        if len(found) == _CHANGES:
            break
    if not found:
        return [], cursor
    at = max(at, *map(_millis, found.values()))
    known |= {"\n".join(key): when for key, when in found.items()}
    late = {key: when for key, when in known.items() if _millis(when) >= at - OVERLAP_MILLIS}
    return list(found), json.dumps([at, late])


def _millis(when: str) -> int:
    return int(when.partition(".")[0])
