"""Values of ours as messages, and back: their fields have the same names."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def pack(kind: Any, value: Any, **more: Any) -> Any:
    """A message with those fields of a value that it has; None is a field that is not set."""
    known = kind.DESCRIPTOR.fields_by_name
    return kind(**{name: found for name, found in _items(value).items() if name in known and found is not None}, **more)


def unpack(kind: type[T], message: Any, **more: Any) -> T:
    """A value with those of its fields that a message has."""
    known = message.DESCRIPTOR.fields_by_name
    return kind(**{name: _field(message, known[name]) for name in _names(kind) if name in known}, **more)


def _items(value: Any) -> Mapping[str, Any]:
    return {name: getattr(value, name) for name in _names(type(value))}


def _names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else tuple(getattr(kind, "_fields", ()))


def _field(message: Any, field: Any) -> Any:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    return tuple(value) if field.is_repeated else value
