"""Downloads of models: a bar on a terminal, a line in a pipe, JSON lines for programs."""

from rich.live import Live

from rushes.surfaces.cli.session import Session
from rushes.surfaces.cli.views.progress import Row, bar
from rushes.surfaces.words import size


class DownloadView:
    """Shows how far each model is."""

    def __init__(self, session: Session) -> None:
        self._session, self._seen = session, dict[str, int]()
        self._live: Live | None = None

    def look(self, model: str, done: int, total: int) -> None:
        """So many bytes of a model have arrived."""
        if self._seen.get(model) == done:
            return
        first, self._seen[model] = model not in self._seen, done
        if self._session.json:
            self._session.message("status", stage="models", model=model, bytes_done=done, bytes_total=total)
        elif self._session.bars:
            self._draw(model, done, total)
        elif first and done < total:  # not what was here before
            self._session.remark(f"downloading {model}, {size(total)}")

    def close(self) -> None:
        """Leave the bar as it is and stop drawing."""
        if self._live:
            self._live.stop()
            self._live = None

    def _draw(self, model: str, done: int, total: int) -> None:
        if self._live is None:
            self._live = Live(console=self._session.err.console, auto_refresh=False)
            self._live.start()
        row = Row(model, done, total, 0.0, int(done < total))
        screen = self._session.err
        words = screen.styled(f"{model:<16} ", *bar(row, utf8=screen.utf8), f"  {size(done)} of {size(total)}")
        self._live.update(words, refresh=True)
