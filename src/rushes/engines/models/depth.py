"""Depth: whether a net gives depth or inverse depth, by its name or by an option."""

from rushes.domain.errors import NeverWorks

_METRES = "fastdepth"  # the only one of the manifest; others mostly give inverse depth
MEANINGS = ("auto", "depth", "inverse")


def gives_inverse(model: str, meaning: str) -> bool:
    """Whether this net gives inverse depth. Raises NeverWorks if `meaning` is none of MEANINGS."""
    if meaning not in MEANINGS:
        raise NeverWorks(f"unknown depth output {meaning!r}", f"Choose from: {', '.join(MEANINGS)}")
    return meaning == "inverse" or (meaning == "auto" and not model.startswith(_METRES))
