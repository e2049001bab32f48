"""`make evidence`: the paper's table from our own runs on SpecBench, written to docs/results.md.

All 480 first turns on the bundled llama pair, a smaller sample on the other families and on SmolLM2 with its chat
template. Exits 1 when a decoder that must be lossless is not.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from results import AuditRun, append_block, audit, smollm2_gguf

from specaudit.report.paper_table import FamilyReport, paper_table

if TYPE_CHECKING:
    from collections.abc import Iterable

DECODERS = "greedy-batch,eqspec,bsp,dsd"
NEW_TOKENS = "50"
FOLDER = Path(__file__).parents[1] / "build" / "evidence"
"""What an interrupted evidence left behind is gone on with."""
LOSSLESS = ("greedy-batch", "eqspec")


def main() -> None:
    """Run the audits, or finish them, and append their blocks to docs/results.md."""
    parser = argparse.ArgumentParser(description="The paper's table from our own runs on SpecBench.")
    parser.add_argument("--specbench", type=Path, required=True, help="SpecBench's question.jsonl")
    parser.add_argument("--whole", type=int, default=480, help="prompts on the bundled llama pair; 0 leaves it out")
    parser.add_argument("--part", type=int, default=32, help="prompts on each other bundled family; 0 leaves them out")
    parser.add_argument("--smollm2", type=int, default=8, help="short prompts on SmolLM2; 0 leaves it out")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where runs are kept until all are done")
    options = parser.parse_args()
    plans = _plans(options)
    with ThreadPoolExecutor(max_workers=2) as workers:  # one torch thread each
        folders = [options.folder / str(number) for number in range(len(plans))]
        audits = workers.map(lambda plan, folder: audit(*plan[1], folder=folder), plans, folders)
        runs = dict(zip([name for name, _ in plans], audits, strict=True))
    _write_table(runs)
    if options.whole:
        _write_llama(next(iter(runs.values())))
    is_lossless = all(_is_lossless(run) for run in runs.values())
    shutil.rmtree(options.folder)
    sys.exit(0 if is_lossless else 1)


def _plans(options: argparse.Namespace) -> list[tuple[str, tuple[str, ...]]]:
    prompts = ("--prompts", f"specbench:{options.specbench}", "--max-new-tokens", NEW_TOKENS, "--decoder", DECODERS,
               "--batch-size", "8")  # fmt: skip
    sizes = {"llama": options.whole, "qwen3": options.part, "glm4": options.part}
    plans: list[tuple[str, tuple[str, ...]]] = [
        (f"bundled {family}", ("--target", f"bundled:{family}", "--limit", str(size), *prompts))
        for family, size in sizes.items()
        if size
    ]
    if options.smollm2:
        # DSD reads every prompt again in each round: with long ones, hours on a model of this size
        short = ("--category", "translation,qa,math_reasoning")
        target = ("--target", str(smollm2_gguf()), "--draft", "noisy:0.12", "--chat-template", *short)
        plans.append(("SmolLM2-135M, chat template", (*target, "--limit", str(options.smollm2), *prompts)))
    return plans


def _write_table(runs: dict[str, AuditRun]) -> None:
    reports = [FamilyReport(family=name, document=run.report) for name, run in runs.items()]
    commands = [f"    specaudit run {run.command}" for run in runs.values()]
    append_block(
        f"SpecBench first turns, raw text unless said, {NEW_TOKENS} new tokens, K = 4, float32",
        [paper_table(reports), "", "Commands:", "", *commands],
    )


def _write_llama(run: AuditRun) -> None:
    arms = run.report["arms"]
    lines = ["| decoder | identical | hazard per token (95 %) | certified | violated | causes | acceptance |",
             "| --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    lines += [_cells(_summary(arm)) for arm in arms]
    categories = [share["category"] for share in arms[0]["categories"]]
    lines += ["", "Identical by category:", "", _cells(["category", *(arm["decoder"] for arm in arms)])]
    lines += [_cells(["---"] * (len(arms) + 1))]
    for place, category in enumerate(categories):
        shares = [arm["categories"][place]["exact_match"] for arm in arms]
        lines.append(_cells([category, *(f"{share['count']}/{share['total']}" for share in shares)]))
    append_block("The bundled llama pair on SpecBench, batch 8: by category, with hazards", lines)


def _summary(arm: dict[str, Any]) -> list[str]:
    hazard, acceptance, syncs = arm["hazard"], arm["acceptance"], arm["syncs"]
    return [
        arm["decoder"],
        f"{arm['verdicts']['identical']}/{arm['cases']}",
        f"{hazard['rate']:.5f} ({hazard['low']:.5f} to {hazard['high']:.5f})",
        str(syncs["certified"]),
        str(syncs["violated"]),
        ", ".join(f"{cause} {count}" for cause, count in sorted(arm["causes"].items(), key=lambda one: -one[1])) or "-",
        "-" if acceptance is None else f"{acceptance['rate']:.0%}",
    ]


def _cells(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _is_lossless(run: AuditRun) -> bool:
    return all(arm["verdict"] == "lossless" for arm in run.report["arms"] if arm["decoder"] in LOSSLESS)


if __name__ == "__main__":
    main()
