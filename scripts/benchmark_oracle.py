"""`make benchmark-oracle`: how much of the sequential reference's time an oracle replay takes, on SmolLM2.

Both sides do the same work in turn, round after round: the cached batch-1 reference decodes the prompts, the oracle
scores its outputs. The ratio of each round is what counts; times depend on the machine, and the ratio on how fast it
computes beside its memory: decoding reads all weights for each token, a replay once a forward. Prompts are SpecBench's
first turns, cut to at most 134 tokens; end of sequence is ignored, so that every output has the same length.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from results import append_block, smollm2_gguf

from specaudit.core.scores import PromptedOutput
from specaudit.decoders import greedy
from specaudit.models.loading import load_target
from specaudit.models.options import LoadOptions
from specaudit.oracle.replay import machine_epsilon, replay
from specaudit.report.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from specaudit.core.scores import Replay
    from specaudit.models.loaded import LoadedModel

LONGEST_PROMPT = 134
"""Most tokens of a prompt."""

BUDGET = 0.1
"""Largest ratio that the design allows."""


def main() -> None:
    """Measure, append a block to docs/results.md, and exit 1 where the budget is exceeded or a token is not the argmax."""
    parser = argparse.ArgumentParser(description="Time of an oracle replay beside the sequential reference.")
    parser.add_argument("--specbench", type=Path, required=True, help="SpecBench's question.jsonl")
    parser.add_argument("--prompts", type=int, default=8, help="prompts, spread over the file")
    parser.add_argument("--new-tokens", type=int, default=128, help="new tokens of each")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of both sides")
    parser.add_argument("--dry-run", action="store_true", help="print the block and write nothing")
    options = parser.parse_args()
    target = load_target(str(smollm2_gguf()), options=LoadOptions(device="cpu"))
    prompts = _prompts(options.specbench, options.prompts, target)
    outputs = _decode(target, prompts, options.new_tokens)  # the first pass warms both sides up
    replays = _replay_together(target, outputs)
    times: dict[str, list[float]] = {"reference": [], "alone": [], "together": []}
    for number in range(options.rounds):
        times["reference"].append(_seconds(lambda: _decode(target, prompts, options.new_tokens)))
        times["alone"].append(_seconds(lambda: [_replay_together(target, [output]) for output in outputs]))
        times["together"].append(_seconds(lambda: _replay_together(target, outputs)))
        print(f"round {number + 1}: " + ", ".join(f"{name} {taken[-1]:.2f} s" for name, taken in times.items()))
    lines, is_within = _table(times)
    lengths = [len(prompt) for prompt in prompts]
    what = f"{len(prompts)} prompts of {min(lengths)} to {max(lengths)} tokens, {options.new_tokens} new tokens each"
    how = f"{counted(torch.get_num_threads(), 'thread')}, {counted(options.rounds, 'round')}; medians, smallest and largest"
    lines += ["", f"{what}, {how}.", "", _departures(replays, target)]
    if options.dry_run:
        print("\n".join(lines))
    else:
        append_block("Oracle replay beside the sequential reference, SmolLM2-135M-Instruct (Q4_1 as float32)", lines)
    sys.exit(0 if is_within else 1)


def _prompts(path: Path, count: int, target: LoadedModel) -> list[list[int]]:
    questions: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    step = max(1, len(questions) // count)
    texts = [str(question["turns"][0]) for question in questions[::step][:count]]
    return [target.tokenizer(text)["input_ids"][:LONGEST_PROMPT] for text in texts]


def _decode(target: LoadedModel, prompts: Sequence[list[int]], new_tokens: int) -> list[PromptedOutput]:
    decoded = greedy.decode(
        target.model, None, None, list(prompts),
        max_new_tokens=new_tokens, draft_tokens=0, eos_token_ids=set(), pad_token_id=target.pad_token_id,
    )  # fmt: skip
    pairs = zip(prompts, decoded, strict=True)
    return [PromptedOutput(prompt_ids=tuple(prompt), output_ids=tuple(output)) for prompt, output in pairs]


def _replay_together(target: LoadedModel, outputs: Sequence[PromptedOutput]) -> tuple[Replay, ...]:
    return replay(target.model, outputs, pad_token_id=target.pad_token_id)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _table(times: dict[str, list[float]]) -> tuple[list[str], bool]:
    """Return the rows of the table, and whether every median ratio is within the budget."""
    reference = times["reference"]
    rows = ["| oracle replay | reference, s | replay, s | ratio | spread |", "| --- | --- | --- | --- | --- |"]
    is_within = True
    for name, words in (("alone", "one output a forward"), ("together", "all outputs in one call")):
        ratios = [taken / whole for taken, whole in zip(times[name], reference, strict=True)]
        ratio = statistics.median(ratios)
        is_within &= ratio <= BUDGET
        rows.append(
            f"| {words} | {statistics.median(reference):.2f} | {statistics.median(times[name]):.2f} | {ratio:.3f} |"
            f" {min(ratios):.3f}-{max(ratios):.3f} |"
        )
    return rows, is_within


def _departures(replays: Sequence[Replay], target: LoadedModel) -> str:
    """Say how far rounding took the reference's own tokens from the oracle's argmax, in roundings of the largest logit."""
    scores = [score for found in replays for score in found.scores]
    regret = max(score.regret for score in scores)
    rounding = machine_epsilon(target.model) * max(abs(score.largest_logit) for score in scores)
    count = sum(score.rank > 0 for score in scores)
    return (
        f"{count} of the reference's {len(scores)} tokens are not the oracle's argmax; their largest regret is"
        f" {regret:.3g} logits, {regret / rounding:.1f} roundings of the largest logit."
    )


if __name__ == "__main__":
    main()
