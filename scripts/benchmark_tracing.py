"""`make benchmark-tracing`: what watching costs, on SmolLM2 in batches of 8.

The same decoder runs traced and untraced in turn, round after round; the ratio of each round is what counts. Batched
greedy decoding leaves the cache alone, EQSPEC realigns it. Judging the trace afterwards is timed beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from results import append_block, smollm2_gguf

from specaudit.checks.judgement import judge
from specaudit.checks.streams import trace_streams
from specaudit.decoders import eqspec, greedy_batch
from specaudit.models.loaded import LoadedModel
from specaudit.models.loading import load_pair
from specaudit.models.options import LoadOptions
from specaudit.report.numbers import counted
from specaudit.trace.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

BUDGETS = {"greedy-batch": 1.05, "eqspec": 1.10}
"""Largest ratio of traced to untraced that the design allows: cache left alone, cache realigned."""


def main() -> None:
    """Measure, append a block to docs/results.md, and exit 1 where a budget is exceeded."""
    parser = argparse.ArgumentParser(description="Time of decoders that are watched beside those that are not.")
    parser.add_argument("--specbench", type=Path, required=True, help="SpecBench's question.jsonl")
    parser.add_argument("--new-tokens", type=int, default=48, help="new tokens of each prompt")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of both sides")
    parser.add_argument("--dry-run", action="store_true", help="print the block and write nothing")
    options = parser.parse_args()
    pair = load_pair(str(smollm2_gguf()), "layers:6", options=LoadOptions(device="cpu"))
    target, draft = pair.target, pair.draft
    assert isinstance(draft, LoadedModel)  # noqa: S101 (layers:6 is a model)
    questions = [json.loads(line) for line in options.specbench.read_text(encoding="utf-8").splitlines()][::60]
    prompts = [target.tokenizer(str(question["turns"][0]))["input_ids"][:150] for question in questions[:8]]
    rows = ["| decoder | untraced, s | traced, s | ratio | spread | budget | judging, s |",
            "| --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    is_within = True
    for name, decode in (("greedy-batch", greedy_batch.decode), ("eqspec", eqspec.decode)):
        call: dict[str, Any] = {"max_new_tokens": options.new_tokens, "draft_tokens": 4, "eos_token_ids": set(),
                                "pad_token_id": target.pad_token_id}  # fmt: skip
        plain, traced, judging = _rounds(target.model, draft.model, decode, prompts, call, options.rounds)
        ratios = [one / other for one, other in zip(traced, plain, strict=True)]
        ratio = statistics.median(ratios)
        is_within &= ratio <= BUDGETS[name]
        rows.append(
            f"| {name} | {statistics.median(plain):.2f} | {statistics.median(traced):.2f} | {ratio:.3f} |"
            f" {min(ratios):.3f}-{max(ratios):.3f} | {BUDGETS[name]:.2f} | {statistics.median(judging):.2f} |"
        )
    lengths = [len(prompt) for prompt in prompts]
    what = f"8 prompts of {min(lengths)} to {max(lengths)} tokens, {options.new_tokens} new tokens, K = 4"
    how = f"draft of the first 6 layers, float32, {counted(torch.get_num_threads(), 'thread')}"
    rows += ["", f"{what}, {how}, {counted(options.rounds, 'round')}; medians."]
    if options.dry_run:
        print("\n".join(rows))
    else:
        append_block("What watching costs, SmolLM2-135M-Instruct (Q4_1 as float32), batch 8", rows)
    sys.exit(0 if is_within else 1)


def _rounds(
    model: Any, draft: Any, decode: Callable[..., Any], prompts: list[list[int]], call: dict[str, Any], count: int
) -> tuple[list[float], list[float], list[float]]:
    """Return the seconds of each round untraced, traced, and of judging the trace; one round more warms up."""
    plain, traced, judging = [], [], []
    for number in range(count + 1):
        start = time.perf_counter()
        decode(model, draft, None, prompts, **call)
        middle = time.perf_counter()
        with Recorder(model) as recorder:
            outputs = decode(model, draft, None, prompts, **call)
        end = time.perf_counter()
        judge(recorder.trace, trace_streams(recorder.trace, prompts, outputs))
        done = time.perf_counter()
        if number:
            plain.append(middle - start)
            traced.append(end - middle)
            judging.append(done - end)
            print(
                f"round {number}: {plain[-1]:.2f} s, traced {traced[-1]:.2f} s, judged {judging[-1]:.2f} s", flush=True
            )
    return plain, traced, judging


if __name__ == "__main__":
    main()
