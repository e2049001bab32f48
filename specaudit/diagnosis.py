"""What `specaudit doctor` finds: facts of the models, what the taps saw, what a run costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What a model is."""

    source: str
    """As the user named it."""

    architecture: str
    """Its class."""

    parameters: int
    """Number of parameters."""

    weight_bytes: int
    """Bytes of parameters and buffers, shared ones counted once."""

    dtype: str
    """Type of the weights."""

    device: str
    """Where they are."""

    attn: str
    """Attention implementation in force."""

    vocabulary: int
    """Width of the logits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """What a target is, as far as decoding depends on it."""

    model: ModelFacts
    """The model itself."""

    windows: tuple[int | None, ...]
    """Sliding window of each attention layer in slots, or None for no limit; empty where no layer is known."""

    positions: str
    """Where positions come from: `rotary`, `learned table`, `learned table, counted in the mask` or `unknown`."""

    position_limit: int | None
    """Positions of a learned table, or None where positions are computed."""

    trained_length: int | None
    """Longest text that the configuration says the model is made for, or None where it does not say."""

    eos_token_ids: tuple[int, ...]
    """Ids that end a text, sorted; may be empty."""

    pad_token_id: int
    """Id that fills rows up."""

    has_chat_template: bool
    """Whether the tokenizer can render chats."""

    ignored_settings: tuple[str, ...]
    """Settings of the generation config that greedy decoding leaves out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TapReadings:
    """What the taps saw in the probe of the target."""

    steps: int
    """Forwards of the target that were noticed."""

    steps_with_ids: int
    """Those whose token ids were seen."""

    steps_with_positions: int
    """Those whose positions were seen as used."""

    steps_with_writes: int
    """Those whose writes into a cache were seen."""

    steps_with_logits: int
    """Those whose logits were seen."""

    attention_layers: int
    """Attention layers that the model has, as far as is known."""

    attention_layers_seen: int
    """Those whose attention was seen in every step."""

    obstacles: tuple[str, ...]
    """Why inner state will be `unobserved`, for people; empty when it will be observed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetProbe:
    """A few greedy steps of the target alone, traced."""

    taps: TapReadings
    """What the taps saw."""

    tokens_per_second: float | None
    """Tokens generated a second at batch 1, tracing included, or None where the probe failed."""

    error: str | None
    """Why the probe failed, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """Bytes that a run needs for weights and caches; activations come on top."""

    batch_size: int
    """Rows."""

    length: int
    """Tokens a row, prompt included."""

    weight_bytes: int
    """Weights of target and draft, shared ones counted once."""

    kv_bytes_per_token: int
    """Keys and values that one token of one row takes, in target and draft."""

    kv_bytes: int
    """Keys and values of target and draft."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderProbe:
    """One call of a decoder on two short prompts, judged as in a run."""

    decoder: str
    """As named on the command line."""

    batch_size: int
    """Rows that decoded together."""

    verdicts: dict[str, int]
    """Cases by verdict."""

    syncs: dict[str, int]
    """Cases by sync."""

    reasons: tuple[str, ...]
    """What was not observed, and why cases are unmeasured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All that the doctor found."""

    target: TargetFacts
    """What the target is."""

    draft: ModelFacts | str | None
    """What the draft is: a model, the recipe of one that is none, or None."""

    probe: TargetProbe
    """What a few steps of the target showed."""

    memory: MemoryEstimate
    """What a run needs."""

    decoders: tuple[DecoderProbe, ...]
    """What the named decoders did."""
