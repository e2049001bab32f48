"""The paper's table: the right number in the right cell, and nothing where nothing was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specaudit.core.gate import decide
from specaudit.core.report_document import report_document
from specaudit.core.summary import summarise
from specaudit.report.paper_table import FamilyReport, paper_table
from tests.report.sample_runs import DIVERGED_IDS, arm, case, clean_cases, failing_run, unmeasured_run


def report(family: str, cases) -> FamilyReport:
    document = report_document(summarise(cases, []), cases, decide(cases, planned=len(cases)), planned_cases=len(cases))
    return FamilyReport(family=family, document=document)


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split(" | ")] for line in table.splitlines() if line.startswith("|")]


def test_layout_is_the_papers() -> None:
    llama = [*clean_cases(arm("eqspec", 1)), *clean_cases(arm("eqspec", 4)), *clean_cases(arm("greedy-batch", 4))]
    table = paper_table([report("Llama", llama), report("Qwen3", failing_run().cases)])
    assert table == "\n".join(
        [
            "| decoder | Llama B1 | Llama B4 | Qwen3 B4 |",
            "| --- | ---: | ---: | ---: |",
            "| eqspec | 100/100 | 100/100 | 100/100 |",
            "| greedy-batch |  | 100/100 | 100/100 |",
            "| bsp |  |  | 75.0/86.1 |",
            "",
            "E/P in %: outputs identical to the reference / mean share of tokens before the first divergence; 16 prompts"
            " a cell. The widest 95 % interval of an E is 50.5 to 89.8 (12 of 16).",
        ]
    )


def test_rows_may_be_named_and_ordered() -> None:
    names = {"bsp": "BSP", "dsd": "DSD", "eqspec": "EQSPEC|ours"}
    table = paper_table([report("Llama", failing_run().cases)], row_names=names)
    assert [line.split(" | ")[0] for line in table.splitlines()[2:5]] == ["| BSP", "| EQSPEC\\|ours", "| greedy-batch"]


def test_batch_sizes_are_numbers_and_reports_of_a_family_are_one() -> None:
    small, large = clean_cases(arm("eqspec", 4)), clean_cases(arm("eqspec", 16))
    table = paper_table([report("Llama", large), report("GLM", small), report("Llama", small)])
    assert rows(table)[0] == ["| decoder", "Llama B4", "Llama B16", "GLM B4 |"]


def test_what_was_not_measured_is_no_zero() -> None:
    table = paper_table([report("Llama", unmeasured_run().cases)])
    cells = {row[0].removeprefix("| "): row[1].removesuffix(" |") for row in rows(table)[2:]}
    assert cells == {"eqspec": "100/100\\*", "my_decoder.py:decode": "-"}
    assert table.endswith("\\* 24 cases unmeasured and left out.")


def test_a_share_is_not_rounded_to_all_or_nothing() -> None:
    of = arm("eqspec", 4)
    nearly = [*clean_cases(of, 2999), case(of, 2999, output_ids=DIVERGED_IDS)]
    assert rows(paper_table([report("Llama", nearly)]))[2][1] == "99.9/99.9 |"


def test_text_has_no_partial_match() -> None:
    cases = [replace(one, partial_match=None) for one in clean_cases(arm("eqspec", 4))]
    assert rows(paper_table([report("Llama", cases)]))[2][1] == "100/- |"


def test_two_arms_in_one_cell_are_refused() -> None:
    both = [*clean_cases(arm("eqspec", 4, 4)), *clean_cases(arm("eqspec", 4, 8))]
    with pytest.raises(ValueError, match="several arms of 'eqspec' at batch 4 in 'Llama'"):
        paper_table([report("Llama", both)])
    with pytest.raises(ValueError, match="several arms"):
        paper_table([report("Llama", clean_cases(arm("eqspec", 4)))] * 2)
    with pytest.raises(ValueError, match="no report has an arm"):
        paper_table([])
