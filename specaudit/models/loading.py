"""Loading a target and its draft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specaudit.core.errors import ModelError, UsageError
from specaudit.models.checkpoint import prepared, read_model, read_tokenizer
from specaudit.models.device import choose_device, choose_dtype
from specaudit.models.digest import model_digest
from specaudit.models.drafts import LayersDraft, NgramDraft, NoisyDraft, StressDraft, is_derived, parse_draft
from specaudit.models.layers_draft import first_layers
from specaudit.models.loaded import LoadedModel, ModelPair
from specaudit.models.noisy_draft import with_noise
from specaudit.models.source import BUNDLED_PREFIX, ModelSource, parse_source
from specaudit.models.special_ids import eos_ids, pad_id, text_config
from specaudit.models.vocabulary import check_vocabularies

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from specaudit.models.options import LoadOptions


def load_pair(target: str, draft: str | None, *, options: LoadOptions) -> ModelPair:
    """Load the models that `--target` and `--draft` name.

    Args:
        target: `bundled:FAMILY`, a model directory, a `.gguf` file or a Hub id.
        draft: the same (of a bundled family, its draft), or derived from the target: `layers:N`, `noisy:SCALE`,
            `stress:RATE`, `ngram` or `ngram:N`. None for the draft of a bundled target, and for no draft with any
            other target.
        options: how to load both.

    Raises:
        ModelError: a model cannot be found, loaded or trusted, or the draft does not fit the target.
        UsageError: options that are wrong or do not go together.
    """
    if is_derived(target):
        raise UsageError(
            f"'{target}' is a draft, not a target", where="--target", way_out=f"pass it as --draft {target}"
        )
    if draft is None and target.startswith(BUNDLED_PREFIX):
        draft = target
    # Both texts are checked before anything is loaded, which can take minutes.
    target_source = parse_source(target, role="target", revision=options.revision)
    draft_source = None if draft is None else parse_draft(draft, options=options)
    if draft_source is None and options.draft_revision is not None:
        raise UsageError("there is no draft", where="--draft-revision", way_out="name one with --draft")

    loaded_target = _load_target(target_source, options)
    if draft is None or draft_source is None:
        return ModelPair(target=loaded_target, draft=None)
    match draft_source:
        case ModelSource():
            loaded_draft = _load_draft(draft_source, loaded_target, options)
        case LayersDraft():
            loaded_draft = _derived(draft, first_layers(loaded_target.model, draft_source.layers), loaded_target)
        case NoisyDraft():
            loaded_draft = _derived(draft, with_noise(loaded_target.model, draft_source), loaded_target)
        case StressDraft() | NgramDraft():
            return ModelPair(target=loaded_target, draft=draft_source)
    return ModelPair(target=loaded_target, draft=loaded_draft)


def load_target(target: str, *, options: LoadOptions) -> LoadedModel:
    """Load the model that `--target` names, alone; of a bundled family, its target.

    Raises:
        ModelError: it cannot be found, loaded or trusted.
        UsageError: options that are wrong, or a derived draft in place of a model.
    """
    if is_derived(target):
        raise UsageError(f"'{target}' is a draft, not a target", where="--target", way_out="name a model")
    return _load_target(parse_source(target, role="target", revision=options.revision), options)


def describe(model: PreTrainedModel, tokenizer: Any, *, source: str) -> LoadedModel:
    """Return a model that is already in memory, with what is needed to decode with it.

    The model is not changed: whoever hands it over sees to evaluation mode and gradients.
    """
    output_embeddings = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    vocab_size = text_config(model).vocab_size if output_embeddings is None else output_embeddings.weight.shape[0]
    eos_token_ids = eos_ids(model, tokenizer)
    return LoadedModel(
        model=model,
        tokenizer=tokenizer,
        source=source,
        digest=model_digest(model),
        dtype=model.dtype,
        device=model.device,
        attn=model.config._attn_implementation,
        eos_token_ids=eos_token_ids,
        pad_token_id=pad_id(model, tokenizer, eos_token_ids=eos_token_ids, vocab_size=vocab_size),
        vocab_size=vocab_size,
    )


def _load_target(source: ModelSource, options: LoadOptions) -> LoadedModel:
    source = prepared(source, options=options)
    tokenizer = read_tokenizer(source, options=options)
    if tokenizer is None:
        raise ModelError(
            "the target has no tokenizer", where=source.given, way_out="add tokenizer.json to the model's directory"
        )
    return describe(_read(source, options), tokenizer, source=source.given)


def _load_draft(source: ModelSource, target: LoadedModel, options: LoadOptions) -> LoadedModel:
    source = prepared(source, options=options)
    own_tokenizer = read_tokenizer(source, options=options)
    tokenizer = target.tokenizer if own_tokenizer is None else own_tokenizer
    draft = describe(_read(source, options), tokenizer, source=source.given)
    check_vocabularies(target, draft)
    return draft


def _read(source: ModelSource, options: LoadOptions) -> PreTrainedModel:
    device = choose_device(options.device)
    return read_model(source, options=options, dtype=choose_dtype(options.dtype, device), device=device)


def _derived(given: str, model: PreTrainedModel, target: LoadedModel) -> LoadedModel:
    return describe(model, target.tokenizer, source=given)
