"""From a source to a model and its tokenizer: the one place that calls transformers' `from_pretrained`."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME
from transformers.utils.hub import cached_file

from specaudit.core.errors import ModelError
from specaudit.models.gguf import converted_gguf
from specaudit.models.releases import dtype_argument
from specaudit.models.restraint import no_conversion_service, quiet_transformers
from specaudit.models.weight_files import ALLOW_PICKLE, check_model_directory, has_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch
    from transformers import PreTrainedModel

    from specaudit.models.options import LoadOptions
    from specaudit.models.source import ModelSource

_WAYS_OUT = (
    ("trust_remote_code", "read the code that comes with the model, then pass --trust-remote-code"),
    ("attn_implementation", "pass --attn sdpa or --attn eager"),
    ("FlashAttention", "pass --attn sdpa or --attn eager"),
    ("attention implementation", "pass --attn eager"),
    ("scaled_dot_product_attention", "pass --attn eager"),
    ("does not recognize this architecture", "install a transformers release that knows the architecture"),
    ("couldn't connect", "check the network, or give a directory that holds the model"),
    ("not a valid model identifier", "check the spelling, or log in with 'hf auth login' if the repository is private"),
    ("gated repo", "ask for access on the model's page, then log in with 'hf auth login'"),
)
"""What to do about the commonest failures, by words of transformers' messages; the first match counts."""


def prepared(source: ModelSource, *, options: LoadOptions) -> ModelSource:
    """Return a source whose `location` is what transformers loads: a Hub id, or a directory that has been checked.

    A GGUF file is converted, unless the cache has it; its location is then the directory of the conversion.

    Raises:
        ModelError: a file that cannot be converted, or a directory without weights that may be loaded.
    """
    if source.kind == "hub":
        return source
    if source.kind == "gguf":
        return replace(source, location=str(converted_gguf(Path(source.location))))
    check_model_directory(Path(source.location), given=source.given, allow_pickle=options.allow_pickle)
    return source


def read_model(
    source: ModelSource, *, options: LoadOptions, dtype: torch.dtype | None, device: torch.device
) -> PreTrainedModel:
    """Return the causal language model of a source on `device`, in evaluation mode and without gradients.

    Args:
        source: a prepared source.
        options: attention implementation and what is trusted.
        dtype: type of the weights, or None for the checkpoint's own.
        device: where to put the weights.

    Raises:
        ModelError: the weights are incomplete, damaged or pickled, or transformers cannot load them.
    """
    arguments: dict[str, Any] = {
        **dtype_argument(dtype),
        "attn_implementation": options.attn,
        "revision": source.revision or "main",
        "trust_remote_code": options.trust_remote_code,
        "use_safetensors": None if options.allow_pickle else True,
        "output_loading_info": True,
        "ignore_mismatched_sizes": True,  # so that the loading info names them
    }
    if source.kind == "hub" and not options.allow_pickle:
        _check_hub_weights(source)
    with quiet_transformers(), no_conversion_service(), _as_model_errors(source):
        loaded: Any = AutoModelForCausalLM.from_pretrained(source.location, **arguments)
        model, loading = loaded
        _check_complete(loading, source)
        ready: PreTrainedModel = model.to(device).eval().requires_grad_(False)
    return ready


def read_tokenizer(source: ModelSource, *, options: LoadOptions) -> Any | None:
    """Return the tokenizer of a prepared source, or None for a local directory that has none.

    Raises:
        ModelError: there should be a tokenizer, and transformers cannot load it.
    """
    if source.kind != "hub" and not has_tokenizer(Path(source.location)):
        return None
    with quiet_transformers(), _as_model_errors(source):
        return AutoTokenizer.from_pretrained(
            source.location, revision=source.revision or "main", trust_remote_code=options.trust_remote_code
        )


def _check_hub_weights(source: ModelSource) -> None:
    """Refuse a repository without safetensors, before transformers asks a public service to convert its pickles."""
    for name in (SAFE_WEIGHTS_NAME, SAFE_WEIGHTS_INDEX_NAME):
        with quiet_transformers(), suppress(OSError):  # no such file
            cached_file(source.location, name, revision=source.revision or "main")
            return
    raise ModelError("found no weights in safetensors", where=source.given, way_out=ALLOW_PICKLE)


def _check_complete(loading: dict[str, Any], source: ModelSource) -> None:
    """Refuse what transformers would fill with random numbers, with no more than a warning."""
    # Releases disagree on whether a mismatch is a name or a name with two shapes.
    mismatched = {entry if isinstance(entry, str) else entry[0] for entry in loading["mismatched_keys"]}
    missing = set(loading["missing_keys"]) - mismatched
    problems = {
        "lacks weights of the model": missing,
        "has weights of another shape than its config.json says": mismatched,
    }
    for problem, names in problems.items():
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise ModelError(
                f"the checkpoint {problem}: {min(names)}{more}",
                where=source.given,
                way_out="give a complete checkpoint of a causal language model, with the config.json that it came with",
            )


@contextmanager
def _as_model_errors(source: ModelSource) -> Iterator[None]:
    try:
        yield
    except ModelError:
        raise
    except Exception as error:  # transformers, safetensors, torch and a model's own code raise whatever they like
        text = str(error)
        way_out = next((way for words, way in _WAYS_OUT if words in text), "--debug shows where it failed")
        first_line = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
        raise ModelError(f"cannot load the model: {first_line}", where=source.given, way_out=way_out) from error
