"""Depth: what a net's numbers mean, by its name or as somebody said."""

from rushes.domain.errors import NeverWorks

_METRES = "fastdepth"  # the only one of the manifest; nets that people bring mostly give inverse depth
MEANINGS = ("auto", "depth", "inverse")


def gives_inverse(model: str, meaning: str) -> bool:
    """Whether larger numbers of this net are nearer.

    Raises:
        NeverWorks: there is no such meaning.
    """
    if meaning not in MEANINGS:
        raise NeverWorks(f"unknown depth output {meaning!r}", f"Choose from: {', '.join(MEANINGS)}")
    return meaning == "inverse" or (meaning == "auto" and not model.startswith(_METRES))
