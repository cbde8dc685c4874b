"""This machine and this home: doctor, config."""

from rushes.surfaces.cli.command import CliGroup, command
from rushes.surfaces.cli.options import open_library
from rushes.surfaces.cli.screen import DONE, TROUBLE, Column
from rushes.surfaces.cli.session import Session


@command("doctor", "rushes doctor", "rushes doctor --json | jq 'select(.ok == false)'")
def doctor(session: Session) -> int:
    """Check this machine and this home; exit 1 if a check fails."""
    checks = open_library(session).doctor()
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
    rows = [(s.name, s.value, s.origin) for s in library.list_settings()]
    settings = {name: {"value": value, "origin": origin} for name, value, origin in rows}
    session.document({"home": library.folder, "settings": settings})
    columns = [Column("setting"), Column("value", wide=True), Column("from")]
    session.table(columns, [[n, str(v), (origin, DONE) if origin == "default" else origin] for n, v, origin in rows])
    session.remark((f"home {library.folder}", DONE))


config = CliGroup("config", help="Show the settings in effect.", commands=[config_show])
