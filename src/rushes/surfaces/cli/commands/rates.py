"""What conversions to 3D took: a table of days, and the latest day beside earlier ones."""

from dataclasses import asdict

import click

from rushes.library import ConversionReport
from rushes.surfaces.cli.command import command
from rushes.surfaces.cli.options import open_library
from rushes.surfaces.cli.screen import DONE, Column
from rushes.surfaces.cli.session import Session

_COLUMNS = ("cloud", "backend", "instance type", "avg_duration_sec", "eta_seconds_per_mb", "date")


@command("rates", "rushes rates", "rushes rates --markdown >> history.md", "rushes rates --json | jq .metrics")
@click.option("--markdown", is_flag=True, help="Print the history as a Markdown table.")
def rates(session: Session, markdown: bool) -> None:
    """Show how long 3D conversion took on this kind of machine, day by day.

    The times of a segment include all its work. Use eta_seconds_per_mb for estimates by file size (ETA_SECONDS_PER_MB).
    --json adds the metrics SegmentConversionDurationSeconds and ConversionSecondsPerMb by the size of segments.
    """
    found = open_library(session).estimates.conversions()
    session.document(found)
    rows = [[str(value) for value in asdict(day).values()] for day in found.history]
    if markdown:
        for row in [list(_COLUMNS), ["---"] * len(_COLUMNS), *rows]:
            session.line(f"| {' | '.join(row)} |")
    else:
        session.table([Column(name, right=name.endswith(("sec", "mb"))) for name in _COLUMNS], rows)
    session.remark((_compared(found), DONE))


def _compared(found: ConversionReport) -> str:
    if not found.history:
        return "no 3D videos yet. Start with: rushes stereo make PATH"
    if found.change is None:
        return "one day so far: nothing to compare it with"
    percent, word = round(100 * abs(found.change - 1)), "more" if found.change > 1 else "less"
    return f"the latest day took {percent} % {word} per MB than the median of earlier ones"
