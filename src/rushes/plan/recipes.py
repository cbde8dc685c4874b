"""Recipes: what is wanted from a video, as named stages; resolved with what they need."""

from collections.abc import Iterable, Mapping, Sequence

from rushes.domain.errors import Refused
from rushes.domain.stage import StageSpec, stage_of

_SEEN = ("read_text", "segments", "objects", "faces", "places", "pictures")
_STEREO = ("depth", "grade", "stereo", "join")
RECIPES: Mapping[str, tuple[str, ...]] = {
    "searchable": ("probe", "develop", "audio", "playlist", "shots", "transcribe", "transcript", *_SEEN),
    "subtitles": ("probe", "audio", "transcribe", "transcript"),
    "analyse": ("probe", "develop", "audio", "shots", "transcribe", "transcript", *_SEEN),
    "text": ("probe", "develop", "playlist", "stills", "read_text", "segments"),
    "3d": ("probe", "develop", "shots", *_STEREO),
    "everything": ("probe", "develop", "audio", "playlist", "shots", "transcribe", "transcript", *_SEEN, *_STEREO),
}


def stages_of(
    recipe: str, specs: Mapping[str, StageSpec], only: Iterable[str] = (), skip: Iterable[str] = ()
) -> tuple[str, ...]:
    """The stages of a recipe in an order in which needs come first.

    `only` keeps those stages and what they need (and may name stages beyond the recipe);
    `skip` leaves stages out, with everything that needs them. What is not installed is left out of a recipe.
    Raises:
        Refused: an unknown recipe or stage, a stage of `only` needs one of `skip`, or no stage is left.
    """
    only, skip = tuple(only), tuple(skip)
    if recipe not in RECIPES:
        raise Refused(f"unknown recipe {recipe!r}", f"Choose from: {', '.join(RECIPES)}")
    for name in (*only, *skip):
        if name not in specs:
            raise Refused(f"unknown stage {name!r}", f"Choose from: {', '.join(sorted(specs))}")
    wanted = _with_needs(only or [n for n in RECIPES[recipe] if n in specs], specs)
    left = [n for n in wanted if not _needs_any(n, skip, specs)]
    for name in only:
        if name not in left:
            hint = f"Do not skip it, or leave {name} out of --only."
            raise Refused(f"{name} needs {_skipped(name, skip, specs)}", hint)
    if left in ([], ["probe"]) and "probe" not in only:
        raise Refused("no stages are left", "Skip fewer stages.")
    return tuple(left)


def requirements_of(names: Iterable[str], specs: Mapping[str, StageSpec], *, deep: bool = True) -> list[str]:
    """Stages with all that they need; if not `deep`, only what they need themselves."""
    if deep:
        return _with_needs(list(names), specs)
    return list(dict.fromkeys(stage_of(need) for name in names for need in specs[name].needs))


def dependants_of(names: Iterable[str], stages: Iterable[str], specs: Mapping[str, StageSpec]) -> list[str]:
    """Stages, and those of `stages` that need one of them."""
    gone = tuple(names)
    return [name for name in stages if name in gone or (name in specs and _needs_any(name, gone, specs))]


def _with_needs(names: Sequence[str], specs: Mapping[str, StageSpec]) -> list[str]:
    ordered: list[str] = []

    def visit(name: str) -> None:
        if name in ordered:
            return
        for need in specs[name].needs:
            visit(stage_of(need))
        ordered.append(name)

    for name in ("probe", *names):
        visit(name)
    return ordered


def _skipped(name: str, skip: Sequence[str], specs: Mapping[str, StageSpec]) -> str:
    """What is skipped of all that a stage needs, or itself."""
    return ", ".join(need for need in _with_needs([name], specs) if need in skip)


def _needs_any(name: str, skip: Sequence[str], specs: Mapping[str, StageSpec]) -> bool:
    if name in skip:
        return True
    return any(_needs_any(stage_of(need), skip, specs) for need in specs[name].needs)
