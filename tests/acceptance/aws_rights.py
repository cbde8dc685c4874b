"""A way to the emulator that lets through only what the policies of a role allow, as IAM would."""

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.faulty_http import Way, _Passing

POLICIES = Path(__file__).resolve().parents[2] / "infra" / "aws"
ACCOUNT = "us-east-1:000000000000"
Right = tuple[str, str]  # an action and the resource
_ITEM = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
_STATEMENT = {"UPDATE": "PartiQLUpdate", "INSERT": "PartiQLInsert", "DELETE": "PartiQLDelete"}
_S3_LIST = {"uploads": "s3:ListBucketMultipartUploads"}
_S3_QUERY = {("GET", "uploadId"): "s3:ListMultipartUploadParts", ("DELETE", "uploadId"): "s3:AbortMultipartUpload"}
_S3 = {"GET": "s3:GetObject", "HEAD": "s3:GetObject", "DELETE": "s3:DeleteObject"}  # the others put something


def rights_of(method: str, path: str, target: str, body: bytes) -> list[Right]:
    """What somebody must be allowed who makes this request."""
    service, _, operation = target.partition(".")
    if service.startswith("DynamoDB"):
        return _dynamodb(operation, json.loads(body))
    if service == "AmazonSQS":
        asked = json.loads(body)
        name = asked.get("QueueName") or asked["QueueUrl"].rpartition("/")[2]
        return [(f"sqs:{operation.removesuffix('Batch')}", f"arn:aws:sqs:{ACCOUNT}:{name}")]
    return _s3(method, path, body)


def _dynamodb(operation: str, asked: Any) -> list[Right]:
    if operation == "TransactWriteItems":
        writes = [(kind, write["TableName"]) for item in asked["TransactItems"] for kind, write in item.items()]
        return [(f"dynamodb:{_ITEM[kind]}", _table(table)) for kind, table in writes]
    if operation == "BatchExecuteStatement":
        texts = [one["Statement"] for one in asked["Statements"]]
        return [(f"dynamodb:{_STATEMENT[text.split()[0]]}", _table(text.split('"')[1])) for text in texts]
    tables = asked.get("RequestItems") or [asked["TableName"]]
    index = f"/index/{asked['IndexName']}" if "IndexName" in asked else ""
    return [(f"dynamodb:{operation}", _table(table) + index) for table in tables]


def _table(name: str) -> str:
    return f"arn:aws:dynamodb:{ACCOUNT}:table/{name}"


def _s3(method: str, path: str, body: bytes) -> list[Right]:
    parts = urlsplit(path)
    bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
    query = parse_qs(parts.query, keep_blank_values=True)
    if "delete" in query:
        keys = re.findall(r"<Key>(.*?)</Key>", body.decode())
        return [("s3:DeleteObject", f"arn:aws:s3:::{bucket}/{key}") for key in keys]
    if not key:
        action = next((action for name, action in _S3_LIST.items() if name in query), "s3:ListBucket")
        return [(action, f"arn:aws:s3:::{bucket}")]
    action = next(
        (a for (of, name), a in _S3_QUERY.items() if of == method and name in query), _S3.get(method, "s3:PutObject")
    )
    return [(action, f"arn:aws:s3:::{bucket}/{key}")]


@dataclass
class Role:
    """The policies that hold now, what was used of them, and what was refused."""

    statements: list[Any] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    refused: list[Right] = field(default_factory=list)

    def take(self, *names: str) -> None:
        """Become a role with these policies, which has used nothing yet."""
        policies = [json.loads((POLICIES / f"{name}-policy.json").read_text()) for name in names]
        self.statements = [statement for policy in policies for statement in policy["Statement"]]
        self.used, self.refused = set(), []

    @property
    def unused(self) -> set[str]:
        """Actions that are allowed and that nobody needed."""
        return {action for statement in self.statements for action in statement["Action"]} - self.used

    def refusal(self, rights: list[Right]) -> Right | None:
        """The first right that is missing."""
        for action, resource in rights:
            if not any(
                action in s["Action"] and any(fnmatchcase(resource, r) for r in s["Resource"]) for s in self.statements
            ):
                self.refused.append((action, resource))
                return action, resource
            self.used.add(action)
        return None


class _Guard(_Passing):
    role: Role

    def serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        target = self.headers.get("x-amz-target", "")
        refused = self.role.refusal(rights_of(self.command, self.path, target, body))
        if refused is None:
            answer = self.pass_on(body)
            return self.reply(answer.status, answer.headers, answer.body)
        said = f"not authorized to perform: {refused[0]} on {refused[1]}"
        if target:
            error = {"__type": "com.amazon.coral.service#AccessDeniedException", "message": said}
            return self.reply(400, [("content-type", "application/x-amz-json-1.0")], json.dumps(error).encode())
        body = f"<Error><Code>AccessDenied</Code><Message>{said}</Message></Error>".encode()
        return self.reply(403, [], b"" if self.command == "HEAD" else body)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = serve  # noqa: N815 - as http.server wants them


@contextlib.contextmanager
def guarded(upstream: str) -> Iterator[tuple[Role, str]]:
    """A role, and the address at which only what it may do is done."""
    role = Role()
    handler = type("Guard", (_Guard,), {"way": Way(upstream), "role": role})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield role, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
