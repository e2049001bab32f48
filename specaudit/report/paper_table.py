"""Exact and partial match in the layout of the paper's table: decoders down, model families and batch sizes across.

Source of the layout and of the two measures: Zhang et al., arXiv 2510.22876. Pure: report documents in, Markdown out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specaudit.report.numbers import NOTHING, counted, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyReport:
    """A run's report under the name of its model pair; several of one family are read as one run."""

    family: str
    """Heading, such as `Vicuna-7B/68M`."""

    document: Mapping[str, Any]
    """The run's `report.json`."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A family at a batch size."""

    family: str
    batch_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A cell's place in the table."""

    decoder: str
    column: _Column


def paper_table(reports: Sequence[FamilyReport], *, row_names: Mapping[str, str] | None = None) -> str:
    """Return a Markdown table with cells `E/P` in % and a sentence on what they rest on, without a final line break.

    E is the share of prompts whose whole output is identical to the reference's, P the mean share of tokens before the
    first divergence. Decoders keep the order in which they first appear, or that of `row_names`, which also says what
    they are called; families keep the order of `reports`. A cell without an arm is empty, one in which nothing was
    measured is `-`, and one with unmeasured cases has an asterisk.

    Raises ValueError where two arms have the same cell, as draft lengths and seeds have no place in this table, and
    where no report has an arm.
    """
    arms = _arms_by_place(reports)
    if not arms:
        raise ValueError("no report has an arm")
    families = list(dict.fromkeys(report.family for report in reports))
    columns = sorted({place.column for place in arms}, key=lambda one: (families.index(one.family), one.batch_size))
    decoders = list(dict.fromkeys([*(row_names or {}), *(place.decoder for place in arms)]))
    decoders = [decoder for decoder in decoders if any(place.decoder == decoder for place in arms)]
    lines = [
        _row(["decoder", *(f"{column.family} B{column.batch_size}" for column in columns)]),
        _row(["---", *("---:" for _ in columns)]),
        *(
            _row(
                [
                    (row_names or {}).get(decoder, decoder),
                    *(_cell(arms.get(_Place(decoder=decoder, column=column))) for column in columns),
                ]
            )
            for decoder in decoders
        ),
    ]
    return "\n".join([*lines, "", _legend(list(arms.values()))])


def _arms_by_place(reports: Sequence[FamilyReport]) -> dict[_Place, Mapping[str, Any]]:
    arms: dict[_Place, Mapping[str, Any]] = {}
    for report in reports:
        for arm in report.document["arms"]:
            place = _Place(decoder=arm["decoder"], column=_Column(report.family, arm["batch_size"]))
            if place in arms:
                raise ValueError(
                    f"several arms of '{place.decoder}' at batch {place.column.batch_size} in '{report.family}':"
                    " give reports with one draft length and one seed"
                )
            arms[place] = arm
    return arms


def _cell(arm: Mapping[str, Any] | None) -> str:
    if arm is None:
        return ""
    exact, partial = arm["exact_match"], arm["mean_partial_match"]
    if exact is None:
        return NOTHING
    mark = "\\*" if exact["total"] < arm["cases"] else ""
    return f"{percent(exact['rate'])}/{NOTHING if partial is None else percent(partial)}{mark}"


def _legend(arms: Sequence[Mapping[str, Any]]) -> str:
    """Say how many prompts the cells rest on and how far off E may be."""
    measured = [arm["exact_match"] for arm in arms if arm["exact_match"] is not None]
    if not measured:
        return "Nothing was measured."
    fewest, most = (choose(exact["total"] for exact in measured) for choose in (min, max))
    prompts = counted(most, "prompt") if fewest == most else f"{fewest} to {most} prompts"
    widest = max(measured, key=lambda exact: exact["high"] - exact["low"])
    legend = (
        f"E/P in %: outputs identical to the reference / mean share of tokens before the first divergence; {prompts}"
        f" a cell. The widest 95 % interval of an E is {percent(widest['low'])} to {percent(widest['high'])}"
        f" ({widest['count']} of {widest['total']})."
    )
    unmeasured = sum(arm["cases"] - (arm["exact_match"] or {"total": 0})["total"] for arm in arms)
    return legend + (f" \\* {counted(unmeasured, 'case')} unmeasured and left out." if unmeasured else "")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
