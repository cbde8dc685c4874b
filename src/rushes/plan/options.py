"""Options of stages as users write them: `develop.target_fps=5`, checked against the stage specs. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from rushes.domain.errors import Refused
from rushes.domain.keys import JSON
from rushes.domain.stage import StageSpec

StageOptions = Mapping[str, Mapping[str, JSON]]
_MAX_ITEMS = 50
_MAX_TEXT = 200


def parse_options(texts: Iterable[str]) -> dict[str, dict[str, JSON]]:
    """`stage.name=value`, one after the other; several values of one name are separated by `+`.

    Raises:
        Refused: one is written differently.
    """
    found: dict[str, dict[str, JSON]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        stage, dot, option = name.strip().partition(".")
        if not (equals and dot and stage and option):
            raise Refused(f"invalid option {text[:60]!r}", "Write STAGE.NAME=VALUE, for example develop.target_fps=5")
        found.setdefault(stage, {})[option] = value.strip()
    return found


def merge_options(*several: StageOptions) -> dict[str, dict[str, JSON]]:
    """Later ones win, name by name."""
    merged: dict[str, dict[str, JSON]] = {}
    for options in several:
        for stage, values in options.items():
            merged.setdefault(stage, {}).update(values)
    return merged


def check_options(options: StageOptions, specs: Mapping[str, StageSpec]) -> dict[str, dict[str, JSON]]:
    """The same with every value of the kind that its stage takes.

    Raises:
        Refused: there is no such stage or option, or the value is out of its limits.
    """
    for stage in options:
        if stage not in specs:
            raise Refused(f"unknown stage {stage[:60]!r} in options", f"Choose from: {', '.join(sorted(specs))}")
    return {
        stage: {name: _checked(specs[stage], name, value) for name, value in values.items()}
        for stage, values in options.items()
    }


def _checked(spec: StageSpec, name: str, value: JSON) -> JSON:
    where = f"{spec.name}.{name[:60]}"
    if name not in spec.limits:
        known = ", ".join(sorted(spec.limits)) or "none"
        raise Refused(f"unknown option {where}", f"Options of {spec.name}: {known}")
    made = _converted(type(spec.options[name]), value)
    if made is None or not _fits(made, spec.limits[name]):
        raise Refused(f"invalid value {str(value)[:60]!r} for {where}", f"Allowed: {_allowed(spec, name)}.")
    return made


def _fits(value: Any, limits: tuple[Any, ...]) -> bool:
    if isinstance(value, list):
        return 0 < len(value) <= _MAX_ITEMS and all(0 < len(one) <= _MAX_TEXT for one in value)
    if not limits:
        return not isinstance(value, str) or len(value) <= _MAX_TEXT
    return value in limits if isinstance(value, str) else bool(limits[0] <= value <= limits[1])


def _converted(kind: type, value: JSON) -> Any:
    """None if it is not of that kind."""
    if kind is list:
        items = value.replace("+", ",").split(",") if isinstance(value, str) else value
        is_list = isinstance(items, list | tuple) and all(isinstance(one, str) for one in items)
        return [one.strip() for one in items] if is_list else None
    if kind is bool:
        return {"true": True, "1": True, "false": False, "0": False}.get(str(value).lower())
    try:
        return None if isinstance(value, bool | list | dict) else kind(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _allowed(spec: StageSpec, name: str) -> str:
    kind, limits = type(spec.options[name]), spec.limits[name]
    if limits and kind is str:
        return ", ".join(one or "nothing" for one in limits)
    if limits:
        return f"{limits[0]} to {limits[1]}"
    return {int: "a whole number", float: "a number", bool: "true or false", list: "names, separated by +"}.get(
        kind, "a short text"
    )
