from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobEventType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_EVENT_TYPE_UNSPECIFIED: _ClassVar[JobEventType]
    JOB_EVENT_TYPE_PROCESS_START: _ClassVar[JobEventType]
    JOB_EVENT_TYPE_OUTPUT_DATA: _ClassVar[JobEventType]
    JOB_EVENT_TYPE_PROCESS_END: _ClassVar[JobEventType]
    JOB_EVENT_TYPE_PROCESS_ERROR: _ClassVar[JobEventType]
JOB_EVENT_TYPE_UNSPECIFIED: JobEventType
JOB_EVENT_TYPE_PROCESS_START: JobEventType
JOB_EVENT_TYPE_OUTPUT_DATA: JobEventType
JOB_EVENT_TYPE_PROCESS_END: JobEventType
JOB_EVENT_TYPE_PROCESS_ERROR: JobEventType

class JobEvent(_message.Message):
    __slots__ = ("sequence", "timestamp", "type", "data")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    timestamp: int
    type: JobEventType
    data: bytes
    def __init__(self, sequence: _Optional[int] = ..., timestamp: _Optional[int] = ..., type: _Optional[_Union[JobEventType, str]] = ..., data: _Optional[bytes] = ...) -> None: ...

class PublishRequest(_message.Message):
    __slots__ = ("task_token", "events")
    TASK_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    task_token: str
    events: _containers.RepeatedCompositeFieldContainer[JobEvent]
    def __init__(self, task_token: _Optional[str] = ..., events: _Optional[_Iterable[_Union[JobEvent, _Mapping]]] = ...) -> None: ...

class PublishResponse(_message.Message):
    __slots__ = ("persisted",)
    PERSISTED_FIELD_NUMBER: _ClassVar[int]
    persisted: int
    def __init__(self, persisted: _Optional[int] = ...) -> None: ...

class StreamRequest(_message.Message):
    __slots__ = ("job_id", "from_sequence", "from_timestamp", "types", "from_attempt")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    FROM_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    FROM_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    from_sequence: int
    from_timestamp: int
    types: _containers.RepeatedScalarFieldContainer[JobEventType]
    from_attempt: int
    def __init__(self, job_id: _Optional[str] = ..., from_sequence: _Optional[int] = ..., from_timestamp: _Optional[int] = ..., types: _Optional[_Iterable[_Union[JobEventType, str]]] = ..., from_attempt: _Optional[int] = ...) -> None: ...

class StreamResponse(_message.Message):
    __slots__ = ("event", "attempt", "task_id", "number", "truncated_before")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    event: JobEvent
    attempt: int
    task_id: str
    number: int
    truncated_before: int
    def __init__(self, event: _Optional[_Union[JobEvent, _Mapping]] = ..., attempt: _Optional[int] = ..., task_id: _Optional[str] = ..., number: _Optional[int] = ..., truncated_before: _Optional[int] = ...) -> None: ...
