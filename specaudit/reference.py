"""The reference: the target's own batch-1 greedy output, kept between runs.

A stored output is found by everything that decides it: the target's weights and configuration, the prompt's ids, the
settings, and the versions of the libraries that computed it. A file that cannot be read is computed again. It is watched
like every decoder: a target whose own cache goes wrong gives no reference, and so no evidence.
"""

from __future__ import annotations

import json
import platform
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import torch
import transformers

from specaudit.cache_folder import cache_root
from specaudit.checks.judgement import judge
from specaudit.checks.streams import trace_streams
from specaudit.core.vocabulary import Sync
from specaudit.decoders import greedy
from specaudit.decoders.greedy import NanLogitsError
from specaudit.trace.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from transformers import GenerationConfig

    from specaudit.models.loaded import LoadedModel

ALGORITHM = 4
"""Raised whenever the reference decoder changes what it computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceOutput:
    """The reference's output for one prompt."""

    output_ids: tuple[int, ...]
    """Generated token ids, up to and including EOS; empty where there is no reference."""

    cached: bool
    """Whether an earlier run computed it."""

    error: str | None = None
    """Why there is no reference, or None. Where the target computes NaN, nothing can be compared."""


class Reference:
    """Decodes prompts with the target alone, at most once each."""

    def __init__(
        self,
        target: LoadedModel,
        *,
        max_new_tokens: int,
        eos_token_ids: frozenset[int],
        generation_config: GenerationConfig | None = None,
    ) -> None:
        """Decode up to `max_new_tokens` tokens, ending at any of `eos_token_ids`.

        With a `generation_config`, its processors change the logits before the argmax.
        """
        self.target = target
        self.generation_config = generation_config
        self.max_new_tokens = max_new_tokens
        self.eos_token_ids = eos_token_ids
        settings = {
            "algorithm": ALGORITHM,
            "target": target.digest,
            "dtype": str(target.dtype),
            "device": _device_name(target.device),
            "attn": target.attn,
            "max_new_tokens": max_new_tokens,
            "eos_token_ids": sorted(eos_token_ids),
            "processors": None if generation_config is None else repr(generation_config.to_diff_dict()),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        }
        key = sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        self.folder = cache_root() / "references" / key

    def decode(self, prompt_ids: Sequence[int]) -> ReferenceOutput:
        """Return the output for one prompt, from the cache or computed and stored."""
        path = self.folder / f"{ids_digest(prompt_ids)}.json"
        stored = self._read(path, prompt_ids)
        if stored is not None:
            return ReferenceOutput(output_ids=stored, cached=True)
        recorder = Recorder(self.target.model)
        try:
            with recorder:
                (output,) = greedy.decode(
                    self.target.model,
                    None,
                    self.target.tokenizer,
                    [list(prompt_ids)],
                    max_new_tokens=self.max_new_tokens,
                    draft_tokens=0,
                    eos_token_ids=set(self.eos_token_ids),
                    pad_token_id=self.target.pad_token_id,
                    generation_config=self.generation_config,
                )
        except NanLogitsError as error:
            return ReferenceOutput(output_ids=(), cached=False, error=f"no reference: {error}")
        (judged,) = judge(
            recorder.trace,
            trace_streams(recorder.trace, [prompt_ids], [output]),
            logits_are_processed=self.generation_config is not None,
        )
        if judged.sync is Sync.VIOLATED:
            why = f"no reference: the target's own greedy decoding is not right, {judged.findings[0].message}"
            return ReferenceOutput(output_ids=(), cached=False, error=why)
        _write(path, _document(prompt_ids, output))
        return ReferenceOutput(output_ids=tuple(output), cached=False)

    def _read(self, path: Path, prompt_ids: Sequence[int]) -> tuple[int, ...] | None:
        """Return a stored output, or None for one that is missing, torn, edited, or not this prompt's."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            document = json.loads(path.read_text(encoding="utf-8"))
            output = [int(token) for token in document["output_ids"]]
            if document == _document(prompt_ids, output) and 0 < len(output) <= self.max_new_tokens:
                return tuple(output)
        return None


def _document(prompt_ids: Sequence[int], output: Sequence[int]) -> dict[str, Any]:
    """Return what is stored of an output, with a digest over all of it."""
    prompt = [int(token) for token in prompt_ids]
    return {"prompt_ids": prompt, "output_ids": list(output), "digest": ids_digest([*prompt, -1, *output])}


def ids_digest(ids: Sequence[int]) -> str:
    """Return the SHA-256 of token ids, as hexadecimal digits."""
    return sha256(json.dumps([int(token) for token in ids]).encode()).hexdigest()


def _device_name(device: torch.device) -> str:
    """Return the kind of processor, by its product name where torch knows it: kernels, and so roundings, differ."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"{device.type} {platform.machine()}"


def _write(path: Path, document: dict[str, Any]) -> None:
    """Store an output in one rename; a cache that cannot be written costs time only."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        torn = path.with_name(f"{path.name}.{uuid4().hex}")
        torn.write_text(json.dumps(document), encoding="utf-8")
        torn.replace(path)
