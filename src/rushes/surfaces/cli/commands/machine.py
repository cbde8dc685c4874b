"""This machine and this home: doctor, config, models."""

from collections.abc import Sequence

import click

from rushes.library import ModelStatus
from rushes.surfaces.cli.command import CliGroup, command
from rushes.surfaces.cli.options import open_library, text_option
from rushes.surfaces.cli.screen import DONE, TROUBLE, Column, Part
from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.model_download import DownloadView
from rushes.surfaces.words import setting_value, size


@command("doctor", "rushes doctor", "rushes doctor --fix", "rushes doctor --json | jq 'select(.ok == false)'")
@click.option(
    "--fix", is_flag=True, help="Let browsers from the origins in hosts and cors upload to the bucket (CORS)."
)
def doctor(session: Session, fix: bool) -> int:
    """Check this machine and this home; exit 1 if a check fails."""
    library = open_library(session)
    if fix:
        library.maintenance.fix()
    checks = library.maintenance.doctor()
    session.rows("check", checks)
    for c in checks:
        session.block("ok" if c.ok else "failed", DONE if c.ok else TROUBLE, f"{c.name:<8} {c.detail}")
    for c in checks:
        if not c.ok and c.hint:
            session.block("do", DONE, f"{c.name:<8} {c.hint}")
    return 0 if all(c.ok for c in checks) else 1


@command("show", "rushes config show", "RUSHES_SLOTS=1 rushes config show", "rushes config show --json")
def config_show(session: Session) -> None:
    """Show every setting, its value and where the value comes from."""
    library = open_library(session)
    rows = [(s.name, s.value, s.origin) for s in library.maintenance.settings()]
    settings = {name: {"value": value, "origin": origin} for name, value, origin in rows}
    session.document({"home": library.folder, "settings": settings})
    columns = [Column("setting"), Column("value", wide=True), Column("from")]
    session.table(
        columns, [[n, setting_value(v), (origin, DONE) if origin == "default" else origin] for n, v, origin in rows]
    )
    session.remark((f"home {library.folder}", DONE))


config = CliGroup("config", help="Show the settings in effect.", commands=[config_show])


@command("ls", "rushes models ls", "rushes models ls --json")
def ls(session: Session) -> None:
    """List models, whether they are installed, and where each runs."""
    library = open_library(session, create=True)
    kept, where = library.models.ls(), library.where_models_run()
    session.rows("model", [{**_doc(k), "runs": where.get(k.model.capability, "local")} for k in kept])
    columns = [Column("model"), Column("for"), Column("size", right=True), Column(""), Column("runs")]
    rows = [[*_row(k), where.get(k.model.capability, "local"), (k.model.about, DONE), k.model.licence] for k in kept]
    session.table([*columns, Column("about"), Column("licence")], rows)
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


@command("bench", "rushes models bench", "rushes models bench ppocr-v6-small --device cpu")
@click.argument("names", nargs=-1, metavar="[MODEL]...")
@text_option("--device", "DEVICE", "Only on this one: cpu, cuda or cuda:N.")
def benchmark(session: Session, names: Sequence[str], device: str) -> None:
    """Measure how long each model takes here.

    Runs the installed models, all unless named, on each device, on generated images or audio.
    """
    paces = open_library(session, create=True).bench_models(names, device)
    session.document(paces)
    numbers = [Column(name, right=True) for name in ("seconds", "CPU s", "loading s")]
    rows = [
        [p.model, p.subject, p.device, f"{p.seconds:.3f}", f"{p.cpu_seconds:.3f}", f"{p.loading:.1f}"] for p in paces
    ]
    session.table([Column("model"), Column("asked about"), Column("device"), *numbers], rows)


def _row(kept: ModelStatus) -> list[Part]:
    m, here = kept.model, ("present", DONE) if kept.present else "missing"
    return [m.id, m.capability, size(m.size), here]


def _doc(kept: ModelStatus) -> dict[str, object]:
    names = ("id", "name", "capability", "profile", "languages", "licence", "about", "size")
    return {n: getattr(kept.model, n) for n in names} | {"path": kept.path, "present": kept.present}


models = CliGroup("models", "List, download, check and time the models on this machine.", [ls, pull, verify, benchmark])
