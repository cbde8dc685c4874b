"""Brings what `~about this` needs to the index: an engine on this machine, made only when somebody asks."""

from rushes.engines.local import LocalEngine
from rushes.home import Home
from rushes.index.port import Index
from rushes.index.search import Searching
from rushes.index.semantic import About

MODEL = "minilm-l6"


def meaning(home: Home, query: str) -> Index:
    """The index, able to compare meanings if the query may ask for it."""
    index = home.index
    if "~" in query and isinstance(index, Searching) and index.about is None:
        engine = LocalEngine(home.models, threads=2)
        index.about = About(engine, MODEL, home.folder / f"{MODEL}.directions")
    return index
