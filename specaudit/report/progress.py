"""What a run is doing while it does it: bars on a terminal, plain lines elsewhere, nothing with `--quiet`.

A display listens to the events of the runner and writes to the console that it is given (standard error); it decides
nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, Self

from rich.cells import cell_len
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from specaudit.report.stages import StageTracker
from specaudit.report.symbols import symbols_for
from specaudit.report.visible_text import shorten, shorten_start, visible

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rich.console import Console

    from specaudit.core.events import Event
    from specaudit.report.stages import Stage

INTERVAL_SECONDS = 5.0
"""Least time between two plain lines of one stage."""


NAME_CELLS = 26
"""Most terminal cells for the name of a stage beside its bar."""

BAR_CELLS = 10
"""Terminal cells of a bar."""

COUNT_CELLS = 24
"""Terminal cells set aside for counts, time and gaps beside a bar."""


class ProgressDisplay(Protocol):
    """Shows the progress of one run; the run happens inside its `with` block."""

    def show(self, event: Event) -> None:
        """Take note of an event and show what changed."""

    def __enter__(self) -> Self:
        """Start to show."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """Stop to show and leave the terminal as it was."""


def progress_display(
    console: Console,
    *,
    quiet: bool = False,
    interval_seconds: float = INTERVAL_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> ProgressDisplay:
    """Return the display that suits `console`: bars on a terminal, else a line at most every `interval_seconds`."""
    if quiet:
        return SilentProgress()
    if console.is_terminal:
        return BarProgress(console)
    return LineProgress(console, interval_seconds=interval_seconds, clock=clock)


class SilentProgress:
    """Shows nothing."""

    def show(self, event: Event) -> None:
        """Ignore an event."""

    def __enter__(self) -> Self:
        """Do nothing."""
        return self

    def __exit__(self, *details: object) -> None:
        """Do nothing."""


class LineProgress:
    """Prints a line now and then, and one whenever a stage is complete, for logs and pipes."""

    def __init__(self, console: Console, *, interval_seconds: float, clock: Callable[[], float]) -> None:
        """Print to `console`, at most every `interval_seconds` of `clock` while a stage goes on."""
        self._console = console
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._tracker = StageTracker()
        self._printed = ""
        self._printed_seconds = clock()

    def show(self, event: Event) -> None:
        """Print a line when one is due."""
        stage = self._tracker.follow(event)
        if stage is None:
            return
        is_due = self._clock() - self._printed_seconds >= self._interval_seconds
        if (is_due or stage.is_complete) and stage.line() != self._printed:
            self._print(stage)

    def __enter__(self) -> Self:
        """Start the interval."""
        self._printed_seconds = self._clock()
        return self

    def __exit__(self, *details: object) -> None:
        """Do nothing: every line is complete."""

    def _print(self, stage: Stage) -> None:
        self._printed = stage.line()
        self._printed_seconds = self._clock()
        line = visible(self._printed, ascii_only=symbols_for(self._console).is_ascii)
        self._console.print(Text(line), soft_wrap=True)


class BarProgress:
    """Draws two bars, one for the stage and one for the whole run, which vanish at the end."""

    def __init__(self, console: Console) -> None:
        """Draw on `console`."""
        self._console = console
        self._tracker = StageTracker()
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=BAR_CELLS),
            MofNCompleteColumn(),
            TextColumn("{task.fields[notes]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._stage = self._bars.add_task("loading", total=None, notes="")
        self._run = self._bars.add_task("all cases", total=None, notes="", visible=False)

    def show(self, event: Event) -> None:
        """Move the bars."""
        stage = self._tracker.follow(event)
        planned = self._tracker.planned_cases
        self._bars.update(self._run, total=planned or None, completed=self._tracker.finished_cases, visible=planned > 0)
        if stage is None:
            return
        symbols = symbols_for(self._console)
        name = visible(stage.name, ascii_only=symbols.is_ascii)
        name = shorten_start(name, NAME_CELLS, ellipsis=symbols.ellipsis)  # the batch size is at the end
        notes_cells = self._console.width - cell_len(name) - BAR_CELLS - COUNT_CELLS
        notes = shorten(", ".join(stage.notes), max(len(symbols.ellipsis), notes_cells), ellipsis=symbols.ellipsis)
        self._bars.update(self._stage, description=name, total=stage.total, completed=stage.done, notes=notes)

    def __enter__(self) -> Self:
        """Start to draw."""
        self._bars.start()
        return self

    def __exit__(self, *details: object) -> None:
        """Remove the bars."""
        self._bars.stop()
