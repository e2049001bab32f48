"""What a run plans and what it finds: frozen records that every part of specaudit exchanges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from specaudit.core.vocabulary import Compared

if TYPE_CHECKING:
    from specaudit.core.comparison import Divergence
    from specaudit.core.vocabulary import Cause, Check, Symptom, Sync, Verdict

UNIT_BATCHES = 4
"""A unit of work is this many batches; units are the grain of planning, appending and resuming."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One combination under audit; each prompt runs once in every arm."""

    decoder: str
    """Decoder as named on the command line."""

    batch_size: int
    """Rows that decode together, at least 1."""

    draft_tokens: int | None
    """Tokens proposed a round (K), at least 1, or None for a decoder that does not speculate."""

    seed: int | None
    """Seed of the draft and of the decoder's own randomness, or None for a decoder that does not speculate."""

    @property
    def arm_id(self) -> str:
        """Return the identifier used in case ids: what does not apply to the decoder is left out."""
        draft_tokens = "" if self.draft_tokens is None else f"/k{self.draft_tokens}"
        seed = "" if self.seed is None else f"/s{self.seed}"
        return f"{self.decoder}/b{self.batch_size}{draft_tokens}{seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A combination that was asked for and is not run."""

    decoder: str
    """Decoder as named on the command line."""

    batch_size: int
    """Rows that would decode together."""

    reason: str
    """Why, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlan:
    """Everything that decides what a run computes."""

    target: str
    """Target model as given: `bundled:FAMILY`, a directory, a GGUF file or a Hub id."""

    draft: str | None
    """Draft as given, or None when no decoder drafts."""

    decoders: tuple[str, ...]
    """Decoders under audit, in order."""

    batch_sizes: tuple[int, ...]
    """Batch sizes, in order."""

    draft_tokens: tuple[int, ...]
    """Draft lengths K, in order."""

    max_new_tokens: int
    """Most tokens generated for a prompt, at least 1."""

    prompts: str
    """Prompt set as given."""

    prompt_field: str | None
    """Field or column of a prompt file that holds the prompt, or None for the default."""

    gold_field: str | None = None
    """Field or column of a prompt file that holds the gold answer, or None for the default."""

    turn: int = 1
    """Turn of SpecBench questions that is asked: 1, or 2 with the reference's own answer to the first before it."""

    categories: tuple[str, ...] | None = None
    """Categories of prompts kept, or None for all."""

    sample: int | None = None
    """Number of prompts drawn at random from the set with `seed`, or None for all."""

    limit: int | None
    """Number of prompts taken from the set, spread over its categories, or None for all."""

    chat_template: bool
    """Whether plain prompts are wrapped as a user turn of the tokenizer's chat template."""

    dtype: str | None
    """Floating-point type by name, or None: float32 on a CPU, the checkpoint's own on an accelerator."""

    device: str | None
    """Torch device, or None for the best available."""

    attn: str
    """Attention implementation, by its name in transformers."""

    revision: str | None
    """Revision of a Hub target, or None for its default."""

    draft_revision: str | None
    """Revision of a Hub draft, or None for its default."""

    trust_remote_code: bool
    """Whether code shipped with a model may run."""

    allow_pickle: bool
    """Whether pickled weights may be loaded."""

    eos_token_ids: tuple[int, ...] | None
    """End-of-sequence ids given by the user, or None for the model's; empty to ignore end of sequence."""

    seeds: tuple[int, ...]
    """Seeds, in order: decoders that speculate run once with each, noisy and stress drafts being made anew."""

    threads: int | None
    """Torch threads, or None to leave torch's own default."""

    use_generation_config: bool = False
    """Whether the processors of the target's generation config apply, to reference and decoders alike."""

    trace: str = "full"
    """How much of the cache is looked at: `full` for every layer at every step, `fast` for the first and the last."""

    case_timeout: float | None = None
    """Seconds after which a decoder call is given up, or None for no limit."""

    @property
    def seed(self) -> int:
        """Return the first seed: that of what is drawn once for the run, as a sample of prompts."""
        return self.seeds[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One failed check, at the first place where it failed."""

    check: Check
    """The invariant that failed."""

    step: int
    """Target forward within the decoder's call, counted from 0."""

    row: int
    """Row of the batch in that forward, counted from 0."""

    query: int
    """Token fed by that row in that forward, counted from 0, padding included."""

    stream_index: int
    """Index of the fed token in prompt + output."""

    layer: int | None
    """First layer that shows it, or None where it does not depend on a layer."""

    expected: int | None
    """Value that the invariant demands, or None where it is not a number."""

    actual: int | None
    """Value that was used, or None where it is not a number."""

    message: str
    """One sentence for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseFinding:
    """Why a case failed, at its origin."""

    cause: Cause
    """What went wrong."""

    step: int | None
    """Target forward within the decoder's call where it first shows, counted from 0, or None where no step shows it."""

    row: int | None
    """Row of the batch in that forward, or None."""

    query: int | None
    """Token fed by that row in that forward, padding included, or None."""

    stream_index: int | None
    """Index in prompt + output of the token concerned, or None."""

    layer: int | None = None
    """First layer that shows it, or None where it does not depend on a layer."""

    slot: int | None = None
    """Column of the cache concerned, or None."""

    evidence: str
    """What was seen, in one sentence for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SymptomFinding:
    """What a reader would see wrong in an output, at the place where it begins."""

    symptom: Symptom
    """What kind of thing it is."""

    onset: int | None
    """Index of the generated token where it begins, or None where that is not known (an output without token ids)."""

    extent: int
    """How much of it there is, in the unit that the symptom counts: tokens, characters or marks."""

    reference_extent: int
    """How much of the same the reference has, in the same unit; what it has is excused."""

    what: str
    """What it is, for people: `4 tokens 6 times over`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Which patterns of acceptance a case went through: faults of rolling back show in some of them only."""

    rejected: int
    """Rounds that rejected all proposals."""

    partly: int
    """Rounds that accepted some of them."""

    accepted: int
    """Rounds that accepted all of them."""

    together: int
    """Rounds in which another row of the batch had proposals as well."""

    ragged: int
    """Those of them in which another row accepted another number."""

    longest: int
    """Most proposals of one round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What one prompt did in one arm: a line of `samples.jsonl`."""

    case_id: str
    """`DECODER/bBATCH/kDRAFT/sSEED/PROMPT`, unique in the run; without `k` and `s` where nothing is proposed."""

    decoder: str
    """Decoder as named on the command line."""

    batch_size: int | None
    """Planned rows a batch, or None where a recording does not say."""

    draft_tokens: int | None
    """Planned draft length K, or None for a decoder that does not speculate and where a recording does not say."""

    seed: int | None
    """Seed of draft and decoder, or None as for `draft_tokens`."""

    unit: int
    """Unit of the arm that the case belongs to, counted from 0."""

    call: int
    """Decoder call within the unit, counted from 0; cases of one call ran in one batch, or may have: a recording that
    does not say counts as one call."""

    prompt_id: str
    """Identifier of the prompt in its set."""

    prompt_digest: str
    """SHA-256 of the prompt's token ids, or of its text where a recording has that alone."""

    category: str | None
    """Category of the prompt, or None."""

    gold: str | None = None
    """Answer that the prompt set gives, or None; no verdict rests on it."""

    prompt_ids: tuple[int, ...]
    """Token ids of the prompt; empty where a recording has its text alone."""

    reference_ids: tuple[int, ...]
    """Token ids generated by the reference, up to and including EOS; empty where a recording has text alone."""

    output_ids: tuple[int, ...] | None
    """Token ids generated by the candidate, or None when unmeasured or when it returned text."""

    compared: Compared = Compared.IDS
    """What the verdict compares: token ids, or texts where the candidate returned those."""

    reference_text: str | None
    """Reference ids decoded, special tokens kept; left out where texts are compared. None where a recording has ids
    alone."""

    output_text: str | None
    """Candidate ids decoded, special tokens kept, or the text that it returned; None when unmeasured, or as above."""

    verdict: Verdict
    """Outcome of the comparison."""

    sync: Sync
    """Outcome of the checks inside the target."""

    sync_reason: str | None
    """What was not observed, for `unobserved`; what keeps a `clean` case from being certified; else None."""

    findings: tuple[Finding, ...]
    """First failure of each check, earliest first; empty unless `violated`."""

    causes: tuple[CauseFinding, ...] = ()
    """Why it failed, the origin first; empty unless `violated` or `diverged`."""

    first_divergence: Divergence | None
    """Where the ids part, or None when identical, unmeasured or compared as text."""

    partial_match: float | None
    """Share of tokens before the divergence, in [0, 1], or None when unmeasured or compared as text."""

    largest_regret: float | None = None
    """How far the output strays from what the target chooses: largest of its tokens' regrets at their own prefixes, in
    logits. None where it was not asked for: only diverged cases that nothing is known to be wrong with are replayed."""

    proposed_tokens: int | None
    """Draft tokens that the target verified for places inside the output, or None when not observed."""

    accepted_tokens: int | None
    """Those of `proposed_tokens` that stayed in the output, or None when not observed."""

    target_steps: int | None
    """Target forwards that fed a token of this case, or None when not observed."""

    coverage: Coverage | None = None
    """Patterns of acceptance seen, or None when not observed."""

    error: str | None
    """Why the case is unmeasured, or None."""

    symptoms: tuple[SymptomFinding, ...] = ()
    """What a reader would see wrong and the reference does not show, at most one of a kind; empty when unmeasured."""

    rouge_l: float | None = None
    """ROUGE-L F1 against the reference, special tokens left out, in [0, 1]; None when unmeasured or not applicable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTiming:
    """Wall-clock time of one unit's decoder calls, tracing included."""

    decoder: str
    """Decoder as named on the command line."""

    batch_size: int
    """Planned rows a batch."""

    draft_tokens: int | None
    """Planned draft length K, or None for a decoder that does not speculate."""

    seed: int | None
    """Seed of draft and decoder, or None for a decoder that does not speculate."""

    unit: int
    """Unit of the arm, counted from 0."""

    seconds: float
    """Seconds spent inside the decoder."""

    generated_tokens: int | None
    """Tokens that the decoder returned, or None where it returned text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """What was loaded, for the manifest."""

    source: str
    """Model as given."""

    digest: str | None
    """SHA-256 over configuration and weights, or None for a draft without weights."""

    architecture: str
    """Class of the model."""

    parameters: int
    """Number of parameters."""

    dtype: str
    """Floating-point type of the weights."""

    device: str
    """Torch device."""

    attn: str
    """Attention implementation in force."""

    eos_token_ids: tuple[int, ...]
    """End-of-sequence ids in force, sorted; empty when ignored."""

    pad_token_id: int
    """Token id used to fill a batch."""

    ignored_settings: tuple[str, ...]
    """Settings of the generation config that greedy decoding leaves out (`repetition_penalty=1.3`, ...)."""

    applied_settings: tuple[str, ...] = ()
    """Settings of the generation config that are applied to reference and decoders, where the run asks for it."""


def case_id(arm: Arm, prompt_id: str) -> str:
    """Return the identifier of a prompt's case in an arm."""
    return f"{arm.arm_id}/{prompt_id}"
