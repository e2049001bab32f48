"""Progress: the right words at the right times, on the console that was given."""

from __future__ import annotations

import re
from io import StringIO

from rich.cells import cell_len
from rich.console import Console

from specaudit.core.events import CallFinished, ReferenceDecoded, RunFinished, RunStarted, UnitFinished, UnitStarted
from specaudit.report.progress import BarProgress, LineProgress, SilentProgress, progress_display
from tests.report.sample_runs import DIVERGED_IDS, MODELS, PLAN, arm, case, finding, timing


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def _started(prompts: int = 48, plan=PLAN) -> RunStarted:
    return RunStarted(
        plan=plan,
        target=MODELS.target,
        draft=MODELS.draft,
        decoder_digests={},
        prompt_set="bundled",
        prompt_set_digest="0" * 64,
        prompt_ids=tuple(f"chat-{number:02}" for number in range(prompts)),
        planned_cases=prompts * 6,
    )


def _reference(done: int, total: int, *, cached: bool = False) -> ReferenceDecoded:
    return ReferenceDecoded(prompt_id=f"chat-{done:02}", done=done, total=total, cached=cached)


def _unit(of, unit: int, *, diverged: int = 0, unmeasured: int = 0, violated: int = 0) -> UnitFinished:
    first = unit * 16
    outcomes = [{"output_ids": DIVERGED_IDS}] * diverged
    outcomes += [{"output_ids": None, "error": "crashed"}] * unmeasured
    outcomes += [{"findings": (finding(),)}] * violated
    outcomes += [{}] * (16 - len(outcomes))
    results = tuple(case(of, first + number, **outcome) for number, outcome in enumerate(outcomes))
    return UnitFinished(results=results, timing=timing(of, unit=unit))


def _shown(events, *, waits: float, **options) -> list[str]:
    file, clock = StringIO(), Clock()
    display = progress_display(Console(file=file, width=40), interval_seconds=5, clock=clock, **options)
    with display:
        for event in events:
            clock.seconds += waits
            display.show(event)
    return file.getvalue().splitlines()


def test_lines_come_at_intervals_and_at_the_end_of_a_stage() -> None:
    events = [_started(), *(_reference(done, 24, cached=done <= 5) for done in range(1, 25))]
    assert _shown(events, waits=0) == ["reference: 24 of 24 prompts, 5 cached"]
    assert _shown(events, waits=1) == [
        "reference: 4 of 24 prompts, 4 cached",
        "reference: 9 of 24 prompts, 5 cached",
        "reference: 14 of 24 prompts, 5 cached",
        "reference: 19 of 24 prompts, 5 cached",
        "reference: 24 of 24 prompts, 5 cached",
    ]


def test_an_arm_counts_its_cases_and_what_went_wrong() -> None:
    of, after = arm("eqspec", 4), arm("bsp", 4)
    events = [
        _started(),
        UnitStarted(arm=of, unit=0, cases=16),
        *([CallFinished(cases=4)] * 4),
        _unit(of, 0),
        UnitStarted(arm=of, unit=1, cases=16),
        *([CallFinished(cases=4)] * 4),
        _unit(of, 1, diverged=1, violated=2),
        UnitStarted(arm=of, unit=2, cases=16),
        *([CallFinished(cases=4)] * 4),
        _unit(of, 2, unmeasured=3),
        UnitStarted(arm=after, unit=0, cases=16),
        RunFinished(token_texts={}),
    ]
    lines = _shown(events, waits=10)
    assert "eqspec batch 4: 8 of 48 cases" in lines
    assert "eqspec batch 4: 32 of 48 cases, 1 diverged, 2 violated" in lines
    assert "eqspec batch 4: 48 of 48 cases, 1 diverged, 2 violated, 3 unmeasured" in lines
    assert lines[-1] == "bsp batch 4: 0 of 48 cases"
    assert len(lines) == len(set(lines))
    assert _shown(events, waits=0) == ["eqspec batch 4: 48 of 48 cases, 1 diverged, 2 violated, 3 unmeasured"]


def test_a_resumed_run_starts_in_the_middle() -> None:
    of = arm("eqspec", 4)
    events = [_started(), UnitStarted(arm=of, unit=2, cases=16), CallFinished(cases=4)]
    assert _shown(events, waits=10) == ["eqspec batch 4: 32 of 48 cases", "eqspec batch 4: 36 of 48 cases"]


def test_names_are_escaped_and_lines_are_not_wrapped() -> None:
    of = arm("evil[red]\x1b[2J.py:" + "decode" * 9, 4)
    (line,) = _shown([_started(), UnitStarted(arm=of, unit=0, cases=16)], waits=10)
    assert line == r"evil[red]\u{1b}[2J.py:" + "decode" * 9 + " batch 4: 0 of 48 cases"


def test_quiet_says_nothing() -> None:
    assert _shown([_started(), _reference(24, 24)], waits=10, quiet=True) == []


def test_the_console_decides_the_display() -> None:
    assert isinstance(progress_display(Console(file=StringIO())), LineProgress)
    assert isinstance(progress_display(Console(file=StringIO(), force_terminal=True)), BarProgress)
    assert isinstance(progress_display(Console(file=StringIO(), force_terminal=True), quiet=True), SilentProgress)


def test_bars_show_the_stage_and_vanish() -> None:
    file = StringIO()
    console = Console(file=file, width=100, force_terminal=True, color_system=None, legacy_windows=False)
    of = arm("evil[red]x[/red]", 4)
    with BarProgress(console) as display:
        for event in (_started(), _reference(24, 24), UnitStarted(arm=of, unit=0, cases=16), _unit(of, 0, diverged=1)):
            display.show(event)
            display._bars.refresh()
    shown = file.getvalue()
    assert "evil[red]x[/red] batch 4" in shown
    assert "16/48" in shown
    assert "1 diverged" in shown
    assert "all cases" in shown
    assert "16/288" in shown
    assert shown.rstrip().endswith("\x1b[2K")  # the last thing written erases a line


def test_bars_fit_beside_a_long_name() -> None:
    file = StringIO()
    console = Console(file=file, width=80, force_terminal=True, color_system=None, legacy_windows=False)
    of = arm("some/folder/with/decoders/speculative.py:decode", 4)
    with BarProgress(console) as display:
        display.show(_started())
        display.show(_unit(of, 0, diverged=1, unmeasured=2, violated=3))
        display._bars.refresh()
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue())
    lines = [line for line in shown.replace("\r", "\n").splitlines() if "16/48" in line]
    assert lines
    assert all(line.startswith("…") and "py:decode batch 4" in line and "1 diverged" in line for line in lines)
    assert all(cell_len(line) <= 80 for line in lines)
