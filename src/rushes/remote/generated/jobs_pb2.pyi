from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    JOB_STATE_PENDING: _ClassVar[JobState]
    JOB_STATE_RUNNING: _ClassVar[JobState]
    JOB_STATE_COMPLETED: _ClassVar[JobState]
    JOB_STATE_FAILED: _ClassVar[JobState]
    JOB_STATE_CANCELLED: _ClassVar[JobState]
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_PENDING: JobState
JOB_STATE_RUNNING: JobState
JOB_STATE_COMPLETED: JobState
JOB_STATE_FAILED: JobState
JOB_STATE_CANCELLED: JobState

class Job(_message.Message):
    __slots__ = ("job_id", "queue", "state", "params", "request_id", "created_at", "updated_at", "params_url", "params_size")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    PARAMS_URL_FIELD_NUMBER: _ClassVar[int]
    PARAMS_SIZE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    queue: str
    state: JobState
    params: bytes
    request_id: str
    created_at: int
    updated_at: int
    params_url: str
    params_size: int
    def __init__(self, job_id: _Optional[str] = ..., queue: _Optional[str] = ..., state: _Optional[_Union[JobState, str]] = ..., params: _Optional[bytes] = ..., request_id: _Optional[str] = ..., created_at: _Optional[int] = ..., updated_at: _Optional[int] = ..., params_url: _Optional[str] = ..., params_size: _Optional[int] = ...) -> None: ...

class EnqueueRequest(_message.Message):
    __slots__ = ("queue", "request_id", "params", "priority")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    queue: str
    request_id: str
    params: bytes
    priority: int
    def __init__(self, queue: _Optional[str] = ..., request_id: _Optional[str] = ..., params: _Optional[bytes] = ..., priority: _Optional[int] = ...) -> None: ...

class EnqueueResponse(_message.Message):
    __slots__ = ("job_id", "created_at", "state")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    created_at: int
    state: JobState
    def __init__(self, job_id: _Optional[str] = ..., created_at: _Optional[int] = ..., state: _Optional[_Union[JobState, str]] = ...) -> None: ...

class DequeueRequest(_message.Message):
    __slots__ = ("queue", "max_jobs", "visibility_timeout_seconds", "wait_seconds")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MAX_JOBS_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WAIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    max_jobs: int
    visibility_timeout_seconds: int
    wait_seconds: int
    def __init__(self, queue: _Optional[str] = ..., max_jobs: _Optional[int] = ..., visibility_timeout_seconds: _Optional[int] = ..., wait_seconds: _Optional[int] = ...) -> None: ...

class DequeueResponse(_message.Message):
    __slots__ = ("job", "task_token", "attempt", "traceparent")
    JOB_FIELD_NUMBER: _ClassVar[int]
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    job: Job
    task_token: str
    attempt: int
    traceparent: str
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ..., task_token: _Optional[str] = ..., attempt: _Optional[int] = ..., traceparent: _Optional[str] = ...) -> None: ...

class UpdateVisibilityRequest(_message.Message):
    __slots__ = ("task_token", "queue", "visibility_timeout_seconds")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    queue: str
    visibility_timeout_seconds: int
    def __init__(self, task_token: _Optional[str] = ..., queue: _Optional[str] = ..., visibility_timeout_seconds: _Optional[int] = ...) -> None: ...

class UpdateVisibilityResponse(_message.Message):
    __slots__ = ("task_token",)
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    def __init__(self, task_token: _Optional[str] = ...) -> None: ...

class CompleteRequest(_message.Message):
    __slots__ = ("task_token", "job_id", "result")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    job_id: str
    result: bytes
    def __init__(self, task_token: _Optional[str] = ..., job_id: _Optional[str] = ..., result: _Optional[bytes] = ...) -> None: ...

class CompleteResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: JobState
    def __init__(self, state: _Optional[_Union[JobState, str]] = ...) -> None: ...

class FailRequest(_message.Message):
    __slots__ = ("task_token", "message", "permanent")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PERMANENT_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    message: str
    permanent: bool
    def __init__(self, task_token: _Optional[str] = ..., message: _Optional[str] = ..., permanent: _Optional[bool] = ...) -> None: ...

class FailResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: JobState
    def __init__(self, state: _Optional[_Union[JobState, str]] = ...) -> None: ...

class GiveBackRequest(_message.Message):
    __slots__ = ("task_token",)
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    def __init__(self, task_token: _Optional[str] = ...) -> None: ...

class GiveBackResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("job", "result", "result_url", "result_size")
    JOB_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    RESULT_URL_FIELD_NUMBER: _ClassVar[int]
    RESULT_SIZE_FIELD_NUMBER: _ClassVar[int]
    job: Job
    result: bytes
    result_url: str
    result_size: int
    def __init__(self, job: _Optional[_Union[Job, _Mapping]] = ..., result: _Optional[bytes] = ..., result_url: _Optional[str] = ..., result_size: _Optional[int] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("queue", "state", "created_from", "created_to", "page_size", "cursor", "page")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CREATED_FROM_FIELD_NUMBER: _ClassVar[int]
    CREATED_TO_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    state: JobState
    created_from: int
    created_to: int
    page_size: int
    cursor: str
    page: int
    def __init__(self, queue: _Optional[str] = ..., state: _Optional[_Union[JobState, str]] = ..., created_from: _Optional[int] = ..., created_to: _Optional[int] = ..., page_size: _Optional[int] = ..., cursor: _Optional[str] = ..., page: _Optional[int] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("jobs", "cursor", "last_page")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LAST_PAGE_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    cursor: str
    last_page: bool
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., cursor: _Optional[str] = ..., last_page: _Optional[bool] = ...) -> None: ...
