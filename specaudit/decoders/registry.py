"""The decoders that have a name, with what can be said of each without importing torch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DraftNeed(StrEnum):
    """What a decoder needs to draft with."""

    NONE = "none"
    """It does not speculate."""

    ANY = "any"
    """A model or a drafter (`stress:RATE`, `ngram`)."""

    MODULE = "module"
    """A model: the decoder calls its forward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderInfo:
    """A decoder with a name."""

    name: str
    """What `--decoder` takes."""

    entry_point: str
    """`module:function` of its implementation."""

    summary: str
    """One line for people."""

    draft: DraftNeed
    """What it drafts with."""

    is_lossless: bool
    """Whether it must give the target's own greedy output; False marks baselines kept for their published faults."""

    max_batch_size: int | None = None
    """Most prompts that it decodes together, or None for no limit; larger batches are not planned."""


BUILT_IN = {
    info.name: info
    for info in (
        DecoderInfo(
            name="greedy",
            entry_point="specaudit.decoders.greedy:decode",
            summary="batch-1 greedy, no padding: the reference",
            draft=DraftNeed.NONE,
            is_lossless=True,
        ),
        DecoderInfo(
            name="greedy-batch",
            entry_point="specaudit.decoders.greedy_batch:decode",
            summary="left-padded batched greedy, as one would run without speculation",
            draft=DraftNeed.NONE,
            is_lossless=True,
        ),
        DecoderInfo(
            name="eqspec",
            entry_point="specaudit.decoders.eqspec:decode",
            summary="batched speculation by unpad, append, repad, cache realigned each round (EQSPEC)",
            draft=DraftNeed.ANY,
            is_lossless=True,
        ),
        DecoderInfo(
            name="hf-assisted",
            entry_point="specaudit.decoders.hf_assisted:decode",
            summary="transformers' own assisted generation, one prompt at a time, constant K, no confidence cut",
            draft=DraftNeed.MODULE,
            is_lossless=True,
            max_batch_size=1,
        ),
        DecoderInfo(
            name="bsp",
            entry_point="specaudit.decoders.bsp:decode",
            summary="masking baseline with its published faults: positions count padding and rejected slots (BSP)",
            draft=DraftNeed.ANY,
            is_lossless=False,
        ),
        DecoderInfo(
            name="dsd",
            entry_point="specaudit.decoders.dsd:decode",
            summary="dynamic-padding baseline with its published faults: bonus from the draft, padding attended (DSD)",
            draft=DraftNeed.MODULE,
            is_lossless=False,
        ),
    )
}
