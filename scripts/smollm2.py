"""`make smollm2`: SmolLM2-135M on SpecBench prompts, where padding is EOS and the published code fails.

EQSPEC must be identical at every batch size, raw and with the chat template, for a draft that is a real module and for one
that is not; BSP shows what it does to text. Exits 1 when EQSPEC is not identical everywhere.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from results import AuditRun, append_block, audit, smollm2_gguf

NEW_TOKENS = "40"
BATCH_SIZES = "1,4,8"
FOLDER = Path(__file__).parents[1] / "build" / "smollm2"
"""What an interrupted run left behind is gone on with."""


def main() -> None:
    """Run the audits and append their block to docs/results.md."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--specbench", type=Path, required=True, help="SpecBench's question.jsonl")
    parser.add_argument("--prompts", type=int, default=16, help="prompts, spread over the categories")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where runs are kept until all are done")
    options = parser.parse_args()
    common = (
        "--target",
        str(smollm2_gguf()),
        "--prompts",
        f"specbench:{options.specbench}",
        "--max-new-tokens",
        NEW_TOKENS,
    )
    lines = [
        "| draft | prompts | decoder | batch | identical | certified | acceptance |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    is_right = True
    for form, template in (("raw", ()), ("chat template", ("--chat-template",))):
        for draft in ("noisy:0.12", "stress:0.4"):
            arguments = (*common, "--draft", draft, "--decoder", "eqspec", "--batch-size", BATCH_SIZES,
                         "--limit", str(options.prompts), *template)  # fmt: skip
            run = audit(*arguments, folder=options.folder / f"eqspec-{form}-{draft}".replace(" ", "-"))
            is_right &= run.exit_code == 0
            lines += [_row(draft, form, arm) for arm in run.report["arms"]]
    arguments = (*common, "--draft", "noisy:0.12", "--decoder", "bsp", "--batch-size", "4", "--limit", "4")
    bsp = audit(*arguments, folder=options.folder / "bsp")
    lines += [_row("noisy:0.12", "raw", arm) for arm in bsp.report["arms"]]
    lines += ["", "What BSP makes of them (reference, then BSP; JSON strings):", "", *_texts(bsp)]
    append_block(f"SmolLM2-135M-Instruct (Q4_1 as float32), SpecBench, {NEW_TOKENS} new tokens, K = 4", lines)
    shutil.rmtree(options.folder)
    sys.exit(0 if is_right else 1)


def _row(draft: str, form: str, arm: dict[str, Any]) -> str:
    cases, acceptance = arm["cases"], arm["acceptance"]
    share = "-" if acceptance is None else f"{acceptance['count']}/{acceptance['total']} ({acceptance['rate']:.0%})"
    cells = [draft, form, arm["decoder"], arm["batch_size"], f"{arm['verdicts']['identical']}/{cases}",
             f"{arm['syncs']['certified']}/{cases}", share]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def _texts(run: AuditRun) -> list[str]:
    import json

    return [
        f"    {case['prompt_id']:>4}  {json.dumps(text, ensure_ascii=False)}"
        for case in run.cases
        for text in (case["reference_text"], case["output_text"])
    ]


if __name__ == "__main__":
    main()
