"""Runs made by hand, so that every line of a report has a known cause."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from specaudit.core.comparison import first_divergence, partial_match
from specaudit.core.records import Arm, AuditPlan, CaseResult, Finding, ModelRecord, UnitTiming, case_id
from specaudit.core.summary import RunModels
from specaudit.core.vocabulary import Check, Sync, Verdict
from specaudit.text.description import described
from specaudit.text.output_pair import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXTS = {
    10: " the",
    11: " cat",
    12: " sat",
    13: " on",
    14: " a",
    15: " mat",
    16: ".",
    17: "\n",
    18: "\t",
    2: "</s>",
    20: " dog",
    21: " ran",
}
"""Texts of the sample tokens by id."""

REFERENCE_IDS = (10, 11, 12, 13, 14, 15, 16, 17, 10, 20, 21, 16, 2)
DIVERGED_IDS = (10, 11, 12, 13, 14, 20, 21, 16, 17, 17, 17)

PLAN = AuditPlan(
    target="bundled:llama",
    draft="bundled:llama",
    decoders=("greedy-batch", "eqspec", "bsp"),
    batch_sizes=(1, 4),
    draft_tokens=(4,),
    max_new_tokens=48,
    prompts="bundled",
    prompt_field=None,
    limit=None,
    chat_template=False,
    dtype=None,
    device=None,
    attn="sdpa",
    revision=None,
    draft_revision=None,
    trust_remote_code=False,
    allow_pickle=False,
    eos_token_ids=None,
    seeds=(0,),
    threads=None,
)

_TARGET = ModelRecord(
    source="bundled:llama",
    digest="0" * 64,
    architecture="LlamaForCausalLM",
    parameters=1_912_000,
    dtype="float32",
    device="cpu",
    attn="sdpa",
    eos_token_ids=(2,),
    pad_token_id=0,
    ignored_settings=(),
)
MODELS = RunModels(target=_TARGET, draft=replace(_TARGET, source="bundled:llama/draft", parameters=402_000))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRun:
    """What a report is made from."""

    cases: tuple[CaseResult, ...]
    timings: tuple[UnitTiming, ...]


def text_of(ids: Sequence[int], texts: dict[int, str] = TEXTS) -> str:
    """Return the text of ids."""
    return "".join(texts.get(token, f"<{token}>") for token in ids)


def arm(decoder: str, batch_size: int, draft_tokens: int = 4, seed: int = 0) -> Arm:
    """Return an arm, of a decoder that speculates unless it is `greedy-batch`."""
    if decoder == "greedy-batch":
        return Arm(decoder=decoder, batch_size=batch_size, draft_tokens=None, seed=None)
    return Arm(decoder=decoder, batch_size=batch_size, draft_tokens=draft_tokens, seed=seed)


def case(
    of: Arm,
    number: int,
    *,
    output_ids: tuple[int, ...] | None = REFERENCE_IDS,
    reference_ids: tuple[int, ...] = REFERENCE_IDS,
    findings: tuple[Finding, ...] = (),
    sync_reason: str | None = None,
    error: str | None = None,
    texts: dict[int, str] = TEXTS,
    prompt_id: str | None = None,
    category: str | None = None,
) -> CaseResult:
    """Return the case of prompt `number` in an arm, judged and described as the runner would do it."""
    prompt_id = prompt_id or f"chat-{number:02}"
    drafts = of.decoder != "greedy-batch" and output_ids is not None and sync_reason is None
    is_unseen = sync_reason is not None or error is not None
    divergence = None if output_ids is None else first_divergence(reference_ids, output_ids)
    measured = Verdict.IDENTICAL if divergence is None else Verdict.DIVERGED
    result = CaseResult(
        case_id=case_id(of, prompt_id),
        decoder=of.decoder,
        batch_size=of.batch_size,
        draft_tokens=of.draft_tokens,
        seed=of.seed,
        unit=number // (4 * of.batch_size),
        call=number // of.batch_size % 4,
        prompt_id=prompt_id,
        prompt_digest=sha256(prompt_id.encode()).hexdigest(),
        category=category,
        prompt_ids=(1, 5, 6, 7, 8),
        reference_ids=reference_ids,
        output_ids=output_ids,
        reference_text=text_of(reference_ids, texts),
        output_text=None if output_ids is None else text_of(output_ids, texts),
        verdict=Verdict.UNMEASURED if output_ids is None else measured,
        sync=Sync.VIOLATED if findings else Sync.UNOBSERVED if is_unseen else Sync.CERTIFIED,
        sync_reason=sync_reason,
        findings=findings,
        first_divergence=divergence,
        partial_match=None if output_ids is None else partial_match(reference_ids, output_ids),
        proposed_tokens=20 if drafts else None,
        accepted_tokens=9 if drafts else None,
        target_steps=6,
        error=error,
    )
    return described(result, vocabulary=vocabulary(texts))


def vocabulary(texts: dict[int, str] = TEXTS) -> Vocabulary:
    """Return what is known of the sample ids."""
    return Vocabulary(
        eos_ids=frozenset({2}),
        pad_id=0,
        special_ids=frozenset({0, 2}),
        text_of=lambda ids: text_of(ids, texts),
        plain_text_of=lambda ids: text_of([token for token in ids if token not in {0, 2}], texts),
    )


def finding(check: Check = Check.POS, *, step: int = 2, row: int = 0, query: int = 0, actual: int = 18) -> Finding:
    """Return a finding at token 14 of a row's stream."""
    is_position = check is Check.POS
    return Finding(
        check=check,
        step=step,
        row=row,
        query=query,
        stream_index=14,
        layer=None if is_position else 0,
        expected=14 if is_position else 15,
        actual=actual,
        message=f"token 14 of the row's stream was given position {actual}"
        if is_position
        else f"the row's stream has 15 tokens, attention sees {actual} slots",
    )


def clean_cases(of: Arm, prompts: int = 16) -> tuple[CaseResult, ...]:
    """Return the cases of an arm in which all is well."""
    return tuple(case(of, number) for number in range(prompts))


def timing(of: Arm, *, seconds: float = 0.5, tokens: int = 208, unit: int = 0) -> UnitTiming:
    """Return the time of one unit."""
    return UnitTiming(
        decoder=of.decoder,
        batch_size=of.batch_size,
        draft_tokens=of.draft_tokens,
        seed=of.seed,
        unit=unit,
        seconds=seconds,
        generated_tokens=tokens,
    )


def clean_run() -> SampleRun:
    """Return a run in which every case is identical and clean."""
    arms = [arm(decoder, batch_size) for decoder in ("greedy-batch", "eqspec") for batch_size in (1, 4)]
    cases = tuple(one for of in arms for one in clean_cases(of))
    return SampleRun(cases=cases, timings=tuple(timing(of) for of in arms))


def failing_run() -> SampleRun:
    """Return a run with a clean arm and two that fail: `bsp` diverged and violated, `eqspec` latent."""
    clean, latent, broken = arm("greedy-batch", 4), arm("eqspec", 4), arm("bsp", 4)
    latent_cases = list(clean_cases(latent))
    latent_cases[6] = case(latent, 6, findings=(finding(step=3, row=2),))
    broken_cases = list(clean_cases(broken))
    for number in (1, 2, 9):
        findings = (finding(step=number, row=number % 4), finding(Check.RECT, step=5, row=number % 4, actual=17))
        broken_cases[number] = case(broken, number, output_ids=DIVERGED_IDS, findings=findings)
    broken_cases[12] = case(broken, 12, output_ids=REFERENCE_IDS[:8])
    cases = (*clean_cases(clean), *latent_cases, *broken_cases)
    return SampleRun(cases=cases, timings=(timing(clean), timing(latent, seconds=0.31), timing(broken, seconds=9)))


def corrupted_run() -> SampleRun:
    """Return a run by category with everything that a reader can see go wrong, in two arms of 32 prompts."""
    categories = ("writing", "math", "translation", None)
    cases, timings = [], []
    for of in (arm("bsp", 1), arm("dsd", 1)):
        for number in range(32):
            reference = (*REFERENCE_IDS[:12], 21, 11 + number % 5, 20 + number % 2, 16, 2)
            output = reference
            if number in {1, 5} or (of.decoder == "dsd" and number % 4 == 1):
                output = (*reference[:4], *[20] * 14)
            elif number == 2:
                output = reference[:6]
            elif number in {8, 11}:
                output = (*REFERENCE_IDS[:12], 21, 11 + (19 - number) % 5, 20 + (19 - number) % 2, 16, 2)
            elif number == 14:
                output = (*reference[:15], 0, 16, 2)
            category = categories[number % 4]
            cases.append(case(of, number, reference_ids=reference, output_ids=output, category=category))
        timings.append(timing(of))
    return SampleRun(cases=tuple(cases), timings=tuple(timings))


def unmeasured_run() -> SampleRun:
    """Return a run in which one arm gave nothing and another half."""
    crashing, half = arm("my_decoder.py:decode", 4), arm("eqspec", 4)
    error = "RuntimeError: The size of tensor a (5) must match the size of tensor b (4)\nat dimension 1"
    crashed = tuple(case(crashing, number, output_ids=None, error=error) for number in range(16))
    short = tuple(case(half, n, output_ids=None, error="returned 3 rows for 4 prompts") for n in range(8, 16))
    return SampleRun(cases=(*clean_cases(half, 8), *short, *crashed), timings=(timing(half),))


def unobserved_run() -> SampleRun:
    """Return a run with equal outputs whose inner state was not seen everywhere."""
    seen, unseen = arm("eqspec", 1), arm("eqspec", 4)
    reason = "attention was not called through transformers' registry; --attn sdpa makes it visible"
    some = [case(seen, n, sync_reason="a step had no position ids" if n < 3 else None) for n in range(16)]
    none = [case(unseen, n, sync_reason=reason) for n in range(16)]
    return SampleRun(cases=(*some, *none), timings=(timing(seen), timing(unseen)))


HOSTILE_TEXTS = {
    **TEXTS,
    30: "\x1b[31mred\x1b[0m",
    31: "[red]markup[/red]",
    32: "שלום",
    33: "\u202egnp.exe\u202c",
    34: "漢字テスト",
    35: "👍🏽",
    36: "\x07\r\x9b2J",
    37: ":smile:",
    38: "zero\u200bwidth",
    39: "back\\slash·dot",
    40: "a" * 50,
}
"""Texts that try to take over the terminal, by token id."""


def hostile_run() -> SampleRun:
    """Return a failing run whose texts, names and errors are hostile."""
    of = arm("evil[bold]\x1b]0;title\x07.py:decode", 2)
    reference = (30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 2)
    output = (30, 31, 32, 33, 34, 35, 37, 37, 38, 39, 40, 2)
    first = case(of, 0, reference_ids=reference, output_ids=output, texts=HOSTILE_TEXTS, prompt_id="p[/red]\x1b[2J")
    error = "ValueError: \x1b[2J[link=https://example.org]click[/link]\u2028" + "x" * 400
    second = case(of, 1, output_ids=None, error=error)
    third = case(of, 2, reference_ids=(30, 31, 32, 33, 16, 2), output_ids=(30, 31, 33, 32, 16, 2), texts=HOSTILE_TEXTS)
    return SampleRun(cases=(first, second, third), timings=(timing(of),))
