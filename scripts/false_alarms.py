"""`make false-alarms`: correct decoders on random models, in three types; not one may be called violated.

Random ragged batches of 1 to 16 prompts with 1 to 8 drafts a round, over every architecture that has a random model.
Decoders: plain and batched greedy, EQSPEC, transformers' assisted generation and prompt lookup, and its `generate` with
left padding and with a static cache. A case is certified, or unobserved with a reason; in half precision outputs may
differ from the reference by rounding, and certified they stay. The block goes to docs/results.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for tests/variants

import torch
from results import append_block

from specaudit.checks.judgement import judge
from specaudit.checks.streams import trace_streams
from specaudit.core.shares import upper_bound_of_zero
from specaudit.core.vocabulary import Sync
from specaudit.decoders import eqspec, greedy, greedy_batch
from specaudit.faults.random_models import BUILDERS, random_draft, random_model
from specaudit.trace.recorder import Recorder
from tests.variants.catalogue import variant

if TYPE_CHECKING:
    from collections.abc import Callable

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
ALONE = ("assisted generation", "prompt lookup")
"""Decoders that take one prompt at a time."""


def decoders() -> dict[str, Callable[..., Any]]:
    """Return the decoders by name."""
    return {
        "greedy": greedy.decode,
        "greedy-batch": greedy_batch.decode,
        "eqspec": eqspec.decode,
        "assisted generation": variant("generated_assisted"),
        "prompt lookup": variant("generated_lookup"),
        "generate, left-padded": variant("generated"),
        "generate, static cache": variant("generated_static"),
    }


def main() -> None:
    """Run the campaign; exit 1 where a correct decoder was called violated, or fewer cases than asked for were judged."""
    parser = argparse.ArgumentParser(description="Correct decoders, none of which may be called violated.")
    parser.add_argument("--rounds", type=int, default=3, help="batches of each architecture, type and decoder")
    parser.add_argument("--least", type=int, default=3000, help="cases that there must be")
    parser.add_argument("--dry-run", action="store_true", help="print the block and write nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.monotonic()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: Counter[str] = Counter()
    alarms: list[str] = []
    for architecture in BUILDERS:
        for dtype in DTYPES:
            for name, decode in decoders().items():
                for number in range(options.rounds):
                    random = Random(f"{architecture}:{dtype}:{name}:{number}")  # noqa: S311
                    _run(architecture, dtype, name, decode, random, counts[name], reasons, alarms)
        print(f"{architecture}: {sum(one.total() for one in counts.values())} cases", flush=True)
    lines = _table(counts, reasons, alarms, time.monotonic() - started)
    if options.dry_run:
        print("\n".join(lines))
    else:
        append_block("False alarms: correct decoders on random models", lines)
    total = sum(count.total() for count in counts.values())
    sys.exit(1 if alarms or total < options.least else 0)


def _run(
    architecture: str,
    dtype: str,
    name: str,
    decode: Callable[..., Any],
    random: Random,
    counts: Counter[str],
    reasons: Counter[str],
    alarms: list[str],
) -> None:
    model = random_model(architecture, DTYPES[dtype])
    draft = random_draft(architecture, random.choice([0.02, 0.1, 0.3]), DTYPES[dtype])
    rows = 1 if name in ALONE else random.randint(1, 16)
    prompts = [[random.randrange(64) for _ in range(random.randint(1, 14))] for _ in range(rows)]
    with Recorder(model) as recorder:
        outputs = decode(
            model, draft, None, prompts,
            max_new_tokens=random.randint(1, 16), draft_tokens=random.randint(1, 8),
            eos_token_ids={random.randrange(64)}, pad_token_id=random.randrange(64),
        )  # fmt: skip
    for judgement in judge(recorder.trace, trace_streams(recorder.trace, prompts, outputs)):
        counts[judgement.sync.value] += 1
        if judgement.sync is Sync.UNOBSERVED:
            reasons[str(judgement.reason)] += 1
        elif judgement.sync is not Sync.CERTIFIED:
            alarms.append(f"{architecture}, {dtype}, {name}: {judgement.findings or judgement.reason}")


def _table(counts: dict[str, Counter[str]], reasons: Counter[str], alarms: list[str], seconds: float) -> list[str]:
    rows = ["| decoder | cases | certified | unobserved | violated |", "| --- | --- | --- | --- | --- |"]
    for name, count in counts.items():
        rows.append(
            f"| {name} | {count.total()} | {count['certified']} | {count['unobserved']} | {count['violated']} |"
        )
    total = sum(count.total() for count in counts.values())
    bound = f"None violated leaves a rate of up to {100 * upper_bound_of_zero(total):.2f} % plausible at 95 %."
    what = (
        f"{total} cases over {', '.join(BUILDERS)}, in {', '.join(DTYPES)}; batches of 1 to 16, 1 to 8 drafts a round"
    )
    found = f"{len(alarms)} false alarms, the first: {alarms[0]}" if alarms else bound
    rows += ["", f"{what}; {seconds:.0f} s. {found}"]
    rows += [f"- unobserved, {number}: {reason}" for reason, number in reasons.most_common()]
    return rows


if __name__ == "__main__":
    main()
