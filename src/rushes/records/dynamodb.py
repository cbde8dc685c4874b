"""Records on DynamoDB: an item each in the ledger's table; what was deleted stays as a tombstone."""

import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import replace

from rushes.aws.table import Item, Key, Table, Timestamps, TransactionCancelled, changed_keys
from rushes.domain.errors import StoreAway
from rushes.domain.keys import JSON
from rushes.records.port import Record, Records, next_version
from rushes.telemetry import effect

_TRIES = 20


class DynamoRecords(Records):
    """Documents as items, their version as the revision that a write must have seen."""

    def __init__(self, table: Table) -> None:
        self._table, self._timestamps = table, Timestamps(table.wall)

    def get_many(self, kind: str, owner: str, ids: Collection[str]) -> Mapping[str, Record]:
        items = self._table.fetch(_key(kind, owner, id) for id in ids)
        return {record.id: record for item in items.values() if not (record := _record(item)).deleted}

    def put(self, kind: str, owner: str, id: str, doc: Mapping[str, JSON], expected: int | None = None) -> Record:
        written = self._write("put", Record(kind, owner, id, 0, dict(doc)), expected)
        if written is None:
            raise StoreAway("nothing was written")
        return written

    def delete(self, kind: str, owner: str, id: str, expected: int | None = None) -> bool:
        return self._write("delete", Record(kind, owner, id, 0, {}, deleted=True), expected) is not None

    def list(self, kind: str, owner: str, cursor: str = "", limit: int = 100) -> tuple[tuple[Record, ...], str]:
        rows: list[Record] = []
        for item in self._table.query(_key(kind, owner, "")[0], cursor or " "):
            if not item["deleted"] and item["sk"] != cursor:
                rows.append(_record(item))
            if len(rows) == limit:
                return tuple(rows), rows[-1].id
        return tuple(rows), ""

    def changed(self, cursor: str = "") -> tuple[tuple[Record, ...], str]:
        keys, after = changed_keys(self._table, "records", cursor)
        items = self._table.fetch(keys)
        return tuple(_record(items[key]) for key in keys if key in items), after

    def close(self) -> None:
        """Nothing is held open between requests."""

    def _write(self, verb: str, record: Record, expected: int | None) -> Record | None:
        """The record as it is written; None if there is nothing to delete."""
        key, token = _key(record.kind, record.owner, record.id), secrets.token_hex(8)
        old = self._table.fetch([key]).get(key)
        for _ in range(_TRIES):
            if old and old["by"] == token:
                return _record(old)  # the reply was cut: this is our own
            version = next_version(_record(old) if old else None, f"{record.kind} {record.id}", expected)
            if record.deleted and (old is None or old["deleted"]):
                return None
            new = replace(record, version=version)
            try:
                with effect(f"records.{verb}"):
                    self._table.commit([self._table.put(self._item(key, new, token), int(old["rev"]) if old else None)])
            except TransactionCancelled as e:
                old = e.found[key]
            else:
                return new
        raise StoreAway("too many writers of the same record")

    def _item(self, key: Key, record: Record, token: str) -> Item:
        doc = {"kind": record.kind, "owner": record.owner, "id": record.id, "doc": record.doc}
        item: Item = {"pk": key[0], "sk": key[1], "rev": record.version, "by": token, "deleted": record.deleted}
        return item | {
            "body": json.dumps(doc),
            "of_change": "records",
            "changed_at": f"{self._timestamps.next()}#{record.version}",
        }


def _key(kind: str, owner: str, id: str) -> Key:
    return f"records#{kind}#{owner}", id


def _record(item: Item) -> Record:
    doc = json.loads(str(item["body"]))
    return Record(doc["kind"], doc["owner"], doc["id"], int(item["rev"]), doc["doc"], bool(item["deleted"]))
