"""The models on this machine: list, download, check, time."""

from collections.abc import Sequence

import click

from rushes.library import ModelStatus
from rushes.surfaces.cli.command import CliGroup, command
from rushes.surfaces.cli.options import open_library
from rushes.surfaces.cli.screen import DONE, TROUBLE, Column, Part
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.model_download import DownloadView
from rushes.surfaces.words import size


@command("ls", "rushes models ls", "rushes models ls --json")
def ls(session: Session) -> None:
    """List the known models, and which are on this machine."""
    kept = open_library(session, create=True).models.ls()
    session.rows("model", [_doc(k) for k in kept])
    columns = [Column("model"), Column("for"), Column("size", right=True), Column("licence"), Column("")]
    session.table([*columns, Column("about", wide=True)], [_row(k) for k in kept])
    if not all(k.present for k in kept):
        session.remark(("download the missing ones with: rushes models pull", DONE))


@command("pull", "rushes models pull", "rushes models pull whisper-base")
@click.argument("names", nargs=-1, metavar="[MODEL]...")
def pull(session: Session, names: Sequence[str]) -> None:
    """Download models, all unless named.

    Every file is checked against its hash; afterwards no network is needed.
    """
    pulling = DownloadView(session)
    try:
        paths = open_library(session, create=True).models.pull(names, pulling.look)
    finally:
        pulling.close()
    session.message("summary", models=paths)
    for path in paths:
        session.line(str(path))


@command("verify", "rushes models verify")
def verify(session: Session) -> int:
    """Check the models on this machine.

    Reads every file and compares it with its hash; exit 1 if one is damaged.
    """
    damages = open_library(session, create=True).models.verify()
    session.document({"damaged": damages})
    for damage in damages:
        session.line(("damaged", TROUBLE), f"  {damage.model}  {damage.file}: {damage.why}")
    if damages:
        session.remark(("next: rushes models pull", DONE))
    else:
        session.line("no damage")
    return int(bool(damages))


@command("bench", "rushes models bench", "rushes models bench ppocr-v6-small")
@click.argument("names", nargs=-1, metavar="[MODEL]...")
def benchmark(session: Session, names: Sequence[str]) -> None:
    """Say how long each model takes here.

    Runs the models that are here, all unless named, on a generated picture or sound.
    """
    paces = open_library(session, create=True).bench_models(names)
    session.document(paces)
    columns = [Column("model"), Column("asked about"), Column("CPU s", right=True), Column("loading s", right=True)]
    session.table(columns, [[p.model, p.subject, f"{p.cpu_seconds:.3f}", f"{p.loading:.1f}"] for p in paces])


def _row(kept: ModelStatus) -> list[Part]:
    m, here = kept.model, ("present", DONE) if kept.present else "missing"
    return [m.id, m.capability, size(m.size), m.licence, here, (m.about, DONE)]


def _doc(kept: ModelStatus) -> dict[str, object]:
    names = ("id", "name", "capability", "profile", "languages", "licence", "about", "size")
    return {n: getattr(kept.model, n) for n in names} | {"path": kept.path, "present": kept.present}


models = CliGroup("models", "List, download, check and time the models on this machine.", [ls, pull, verify, benchmark])
