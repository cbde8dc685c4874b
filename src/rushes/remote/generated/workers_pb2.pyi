from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HelloRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HelloResponse(_message.Message):
    __slots__ = ("batch",)
    BATCH_FIELD_NUMBER: _ClassVar[int]
    batch: int
    def __init__(self, batch: _Optional[int] = ...) -> None: ...

class WorkerInfo(_message.Message):
    __slots__ = ("id", "host", "boot", "pid", "pid_start", "lanes", "slots", "machine", "version")
    ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    BOOT_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    PID_START_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    id: str
    host: str
    boot: str
    pid: int
    pid_start: str
    lanes: _containers.RepeatedScalarFieldContainer[str]
    slots: int
    machine: str
    version: str
    def __init__(self, id: _Optional[str] = ..., host: _Optional[str] = ..., boot: _Optional[str] = ..., pid: _Optional[int] = ..., pid_start: _Optional[str] = ..., lanes: _Optional[_Iterable[str]] = ..., slots: _Optional[int] = ..., machine: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class HeldTask(_message.Message):
    __slots__ = ("task_token", "progress")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    progress: float
    def __init__(self, task_token: _Optional[str] = ..., progress: _Optional[float] = ...) -> None: ...

class RenewRequest(_message.Message):
    __slots__ = ("worker", "held", "note")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    worker: WorkerInfo
    held: _containers.RepeatedCompositeFieldContainer[HeldTask]
    note: str
    def __init__(self, worker: _Optional[_Union[WorkerInfo, _Mapping]] = ..., held: _Optional[_Iterable[_Union[HeldTask, _Mapping]]] = ..., note: _Optional[str] = ...) -> None: ...

class RenewResponse(_message.Message):
    __slots__ = ("statuses", "drain", "gone")
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    statuses: _containers.RepeatedScalarFieldContainer[str]
    drain: bool
    gone: bool
    def __init__(self, statuses: _Optional[_Iterable[str]] = ..., drain: _Optional[bool] = ..., gone: _Optional[bool] = ...) -> None: ...

class ClaimTasksRequest(_message.Message):
    __slots__ = ("worker", "lanes", "n", "hinted", "again")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    HINTED_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    worker: str
    lanes: _containers.RepeatedScalarFieldContainer[str]
    n: int
    hinted: _containers.RepeatedScalarFieldContainer[str]
    again: bool
    def __init__(self, worker: _Optional[str] = ..., lanes: _Optional[_Iterable[str]] = ..., n: _Optional[int] = ..., hinted: _Optional[_Iterable[str]] = ..., again: _Optional[bool] = ...) -> None: ...

class TaskLease(_message.Message):
    __slots__ = ("task", "fence", "job", "stage", "chunk", "lane", "spec", "failures", "losses", "task_token")
    TASK_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    task: str
    fence: int
    job: str
    stage: str
    chunk: int
    lane: str
    spec: str
    failures: int
    losses: int
    task_token: str
    def __init__(self, task: _Optional[str] = ..., fence: _Optional[int] = ..., job: _Optional[str] = ..., stage: _Optional[str] = ..., chunk: _Optional[int] = ..., lane: _Optional[str] = ..., spec: _Optional[str] = ..., failures: _Optional[int] = ..., losses: _Optional[int] = ..., task_token: _Optional[str] = ...) -> None: ...

class ClaimTasksResponse(_message.Message):
    __slots__ = ("leases",)
    LEASES_FIELD_NUMBER: _ClassVar[int]
    leases: _containers.RepeatedCompositeFieldContainer[TaskLease]
    def __init__(self, leases: _Optional[_Iterable[_Union[TaskLease, _Mapping]]] = ...) -> None: ...

class TaskFinish(_message.Message):
    __slots__ = ("task_token", "adopted", "seconds")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ADOPTED_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    adopted: bool
    seconds: float
    def __init__(self, task_token: _Optional[str] = ..., adopted: _Optional[bool] = ..., seconds: _Optional[float] = ...) -> None: ...

class CompleteTasksRequest(_message.Message):
    __slots__ = ("finishes",)
    FINISHES_FIELD_NUMBER: _ClassVar[int]
    finishes: _containers.RepeatedCompositeFieldContainer[TaskFinish]
    def __init__(self, finishes: _Optional[_Iterable[_Union[TaskFinish, _Mapping]]] = ...) -> None: ...

class CompleteTasksResponse(_message.Message):
    __slots__ = ("verdicts", "ready")
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    verdicts: _containers.RepeatedScalarFieldContainer[str]
    ready: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, verdicts: _Optional[_Iterable[str]] = ..., ready: _Optional[_Iterable[str]] = ...) -> None: ...

class TaskFailure(_message.Message):
    __slots__ = ("kind", "message", "hint", "verdict", "lines", "signal", "at", "retry_count")
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    RETRY_COUNT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    message: str
    hint: str
    verdict: str
    lines: _containers.RepeatedScalarFieldContainer[str]
    signal: int
    at: str
    retry_count: int
    def __init__(self, kind: _Optional[str] = ..., message: _Optional[str] = ..., hint: _Optional[str] = ..., verdict: _Optional[str] = ..., lines: _Optional[_Iterable[str]] = ..., signal: _Optional[int] = ..., at: _Optional[str] = ..., retry_count: _Optional[int] = ...) -> None: ...

class FailTaskRequest(_message.Message):
    __slots__ = ("task_token", "failure", "delay")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    failure: TaskFailure
    delay: float
    def __init__(self, task_token: _Optional[str] = ..., failure: _Optional[_Union[TaskFailure, _Mapping]] = ..., delay: _Optional[float] = ...) -> None: ...

class FailTaskResponse(_message.Message):
    __slots__ = ("verdict",)
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    verdict: str
    def __init__(self, verdict: _Optional[str] = ...) -> None: ...

class GiveBackTasksRequest(_message.Message):
    __slots__ = ("task_tokens", "reason", "delay")
    TASK_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    task_tokens: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    delay: float
    def __init__(self, task_tokens: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ..., delay: _Optional[float] = ...) -> None: ...

class GiveBackTasksResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LogTaskRequest(_message.Message):
    __slots__ = ("task_token", "first", "lines")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    first: int
    lines: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task_token: _Optional[str] = ..., first: _Optional[int] = ..., lines: _Optional[_Iterable[str]] = ...) -> None: ...

class LogTaskResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SweepRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SweepResponse(_message.Message):
    __slots__ = ("ready", "released", "next_due", "quiet")
    READY_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    NEXT_DUE_FIELD_NUMBER: _ClassVar[int]
    QUIET_FIELD_NUMBER: _ClassVar[int]
    ready: _containers.RepeatedScalarFieldContainer[str]
    released: int
    next_due: float
    quiet: bool
    def __init__(self, ready: _Optional[_Iterable[str]] = ..., released: _Optional[int] = ..., next_due: _Optional[float] = ..., quiet: _Optional[bool] = ...) -> None: ...

class WaitRequest(_message.Message):
    __slots__ = ("lanes", "seconds")
    LANES_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    lanes: _containers.RepeatedScalarFieldContainer[str]
    seconds: float
    def __init__(self, lanes: _Optional[_Iterable[str]] = ..., seconds: _Optional[float] = ...) -> None: ...

class WaitResponse(_message.Message):
    __slots__ = ("busy", "hinted")
    BUSY_FIELD_NUMBER: _ClassVar[int]
    HINTED_FIELD_NUMBER: _ClassVar[int]
    busy: bool
    hinted: bool
    def __init__(self, busy: _Optional[bool] = ..., hinted: _Optional[bool] = ...) -> None: ...

class LeaveRequest(_message.Message):
    __slots__ = ("worker",)
    WORKER_FIELD_NUMBER: _ClassVar[int]
    worker: str
    def __init__(self, worker: _Optional[str] = ...) -> None: ...

class LeaveResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AdoptRequest(_message.Message):
    __slots__ = ("task_token", "key")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    key: str
    def __init__(self, task_token: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class CommittedResult(_message.Message):
    __slots__ = ("key", "output", "manifest_sha256", "size", "count", "schema_version", "publishes", "text_sha256")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    PUBLISHES_FIELD_NUMBER: _ClassVar[int]
    TEXT_SHA256_FIELD_NUMBER: _ClassVar[int]
    key: str
    output: str
    manifest_sha256: str
    size: int
    count: int
    schema_version: int
    publishes: bool
    text_sha256: str
    def __init__(self, key: _Optional[str] = ..., output: _Optional[str] = ..., manifest_sha256: _Optional[str] = ..., size: _Optional[int] = ..., count: _Optional[int] = ..., schema_version: _Optional[int] = ..., publishes: _Optional[bool] = ..., text_sha256: _Optional[str] = ...) -> None: ...

class AdoptResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: CommittedResult
    def __init__(self, result: _Optional[_Union[CommittedResult, _Mapping]] = ...) -> None: ...

class ReadManifestRequest(_message.Message):
    __slots__ = ("task_token", "key")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    key: str
    def __init__(self, task_token: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class ReadBlobRequest(_message.Message):
    __slots__ = ("task_token", "sha256", "offset")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    sha256: str
    offset: int
    def __init__(self, task_token: _Optional[str] = ..., sha256: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class DescribeOriginalRequest(_message.Message):
    __slots__ = ("task_token",)
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    def __init__(self, task_token: _Optional[str] = ...) -> None: ...

class DescribeOriginalResponse(_message.Message):
    __slots__ = ("name", "taken_in", "block_size")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TAKEN_IN_FIELD_NUMBER: _ClassVar[int]
    BLOCK_SIZE_FIELD_NUMBER: _ClassVar[int]
    name: str
    taken_in: str
    block_size: int
    def __init__(self, name: _Optional[str] = ..., taken_in: _Optional[str] = ..., block_size: _Optional[int] = ...) -> None: ...

class ReadOriginalRequest(_message.Message):
    __slots__ = ("task_token", "block")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    block: int
    def __init__(self, task_token: _Optional[str] = ..., block: _Optional[int] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("data", "size", "address")
    DATA_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    size: int
    address: str
    def __init__(self, data: _Optional[bytes] = ..., size: _Optional[int] = ..., address: _Optional[str] = ...) -> None: ...

class WriteBlobRequest(_message.Message):
    __slots__ = ("task_token", "sha256", "size", "data")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    sha256: str
    size: int
    data: bytes
    def __init__(self, task_token: _Optional[str] = ..., sha256: _Optional[str] = ..., size: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class WriteBlobResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CreateManifestRequest(_message.Message):
    __slots__ = ("task_token", "key", "data")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    key: str
    data: bytes
    def __init__(self, task_token: _Optional[str] = ..., key: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class CreateManifestResponse(_message.Message):
    __slots__ = ("created",)
    CREATED_FIELD_NUMBER: _ClassVar[int]
    created: bool
    def __init__(self, created: _Optional[bool] = ...) -> None: ...
