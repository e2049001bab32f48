"""Evidence of a violated case: what the query at its origin saw, slot by slot, and the rounds that led there.

Small enough to be kept for every violated case: it is what `specaudit explain` tells its story from, without the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Holding(StrEnum):
    """What slots of a row's cache hold, to the stream of a case (its prompt + output)."""

    ITSELF = "itself"
    """The token that the query fed."""

    TOKEN = "token"  # noqa: S105 (no password)
    """Tokens of the stream."""

    DRAFT = "draft"
    """Drafts that the stream's row fed and that are not in the stream."""

    PADDING = "padding"
    """Padding."""

    FOREIGN = "foreign"
    """Tokens that another row wrote."""

    UNWRITTEN = "unwritten"
    """Bits that no forward wrote."""


class Role(StrEnum):
    """What a fed token is to the stream of a case."""

    DECIDED = "decided"
    """A token of the prompt, or one that the target had chosen before."""

    ACCEPTED = "accepted"
    """A proposal that stayed in the output."""

    REJECTED = "rejected"
    """A proposal that did not."""

    PADDING = "padding"
    """Padding."""

    OTHER = "other"
    """A token of a row that is not the stream's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRange:
    """Neighbouring columns of one row's cache that hold the same kind of thing."""

    first_column: int
    """First column of the cache, counted from 0."""

    columns: int
    """Number of columns."""

    holding: Holding
    """What they hold."""

    is_visible: bool
    """Whether the query's attention reaches them."""

    is_due: bool
    """Whether it should."""

    stream_index: int | None
    """Index in prompt + output of the first column's token, those of the others following; for a draft, of the place where
    it stood; None where that is not known."""

    row: int | None
    """Row that wrote foreign tokens, else None."""

    steps: tuple[int, ...]
    """Target forward that wrote each column; empty for bits that no forward wrote."""

    token_ids: tuple[int, ...]
    """Token that each column holds; empty for bits that no forward wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FedToken:
    """One token that a row fed."""

    query: int
    """Place in the row's block, counted from 0, padding included."""

    token_id: int
    """Token id."""

    role: Role
    """What it is to the stream."""

    stream_index: int | None
    """Index in prompt + output, or None for padding and proposals that did not stay."""

    position: int | None
    """Position in effect, or None when it was not seen."""

    top_ids: tuple[int, ...]
    """The two most likely tokens after it, the likeliest first; empty where its logits were not seen."""

    top_logits: tuple[float, ...]
    """Their logits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FedBlock:
    """What one row fed in one target forward."""

    step: int
    """Target forward within the decoder's call, counted from 0."""

    row: int
    """Row of the batch in that forward, counted from 0."""

    width: int
    """Number of tokens fed, padding included."""

    tokens_before: int
    """Number of tokens left out before those that are kept, padding not counted."""

    tokens: tuple[FedToken, ...]
    """Those of them that are kept, in order: no padding, of a long block the ones near the end or near the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseEvidence:
    """What was seen of a violated case at its origin: a file in `traces/`."""

    case_id: str
    """Case in `samples.jsonl`."""

    step: int
    """Target forward of the origin, within the decoder's call, counted from 0."""

    row: int
    """Row of the batch in that forward."""

    query: int
    """Token fed by that row in that forward, padding included."""

    stream_index: int
    """Index of that token in prompt + output."""

    layers: tuple[int, ...]
    """Layers whose view the slots are."""

    window: int | None
    """Most slots that a query of these layers may see, itself included, or None for no limit."""

    expected_from: int
    """The query should have seen the stream's tokens from this index up to its own, and nothing else."""

    missing: tuple[int, ...]
    """Indices of those that no visible slot holds."""

    slots: tuple[SlotRange, ...]
    """The row's cache as attention received it, every column once, in order."""

    blocks: tuple[FedBlock, ...]
    """What the stream's rows fed in the few steps before, and at last the block of the origin."""

    output_id: int | None
    """Token that the output has after the query's, or None where it ends or the query's token is in no output."""

    token_texts: Mapping[int, str]
    """Text of each token id that stands here."""


def token_ids_of(evidence: CaseEvidence) -> frozenset[int]:
    """Return every token id that stands in the evidence of a case."""
    fed = [token for block in evidence.blocks for token in block.tokens]
    return frozenset(
        (
            *(token_id for slots in evidence.slots for token_id in slots.token_ids),
            *(token.token_id for token in fed),
            *(token_id for token in fed for token_id in token.top_ids),
            *(() if evidence.output_id is None else (evidence.output_id,)),
        )
    )


def read_evidence(document: Mapping[str, Any]) -> CaseEvidence:
    """Return the evidence that a JSON document holds; raise KeyError, TypeError or ValueError for anything else."""
    values = dict(document)
    values["layers"] = tuple(values["layers"])
    values["missing"] = tuple(values["missing"])
    values["slots"] = tuple(
        SlotRange(
            **{
                **slots,
                "holding": Holding(slots["holding"]),
                "steps": tuple(slots["steps"]),
                "token_ids": tuple(slots["token_ids"]),
            }
        )
        for slots in values["slots"]
    )
    values["blocks"] = tuple(
        FedBlock(**{**block, "tokens": tuple(map(_read_token, block["tokens"]))}) for block in values["blocks"]
    )
    values["token_texts"] = {int(token): str(text) for token, text in values["token_texts"].items()}
    return CaseEvidence(**values)


def _read_token(document: Mapping[str, Any]) -> FedToken:
    return FedToken(
        **{
            **document,
            "role": Role(document["role"]),
            "top_ids": tuple(document["top_ids"]),
            "top_logits": tuple(document["top_logits"]),
        }
    )
