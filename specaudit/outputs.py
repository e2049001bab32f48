"""Reading what a decoder returned: a closed form, so that a mistake is named and never compared."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


class UnusableOutputError(Exception):
    """A decoder returned something that is neither token ids nor text for each prompt."""


def read_outputs(returned: Any, *, count: int, vocabulary_size: int) -> list[tuple[int, ...]] | list[str]:
    """Return the token ids, or the texts, of `count` outputs.

    Accepts a list or tuple of lists, tuples or one-dimensional tensors of integers, or of strings, not of both. Raises
    UnusableOutputError for anything else, for another number of outputs, and for ids outside the vocabulary.
    """
    if not isinstance(returned, list | tuple):
        raise UnusableOutputError(
            f"the decoder returned {_kind(returned)}, not a list with one output a prompt{_list_way_out(returned)}"
        )
    if len(returned) != count:
        raise UnusableOutputError(
            f"the decoder returned {len(returned)} outputs for {count} prompts; return one for each"
        )
    if returned and all(isinstance(output, str) for output in returned):
        return [str(output) for output in returned]
    return [_read_output(output, place, vocabulary_size) for place, output in enumerate(returned)]


def _read_output(output: Any, place: int, vocabulary_size: int) -> tuple[int, ...]:
    tokens: Sequence[Any]
    if isinstance(output, Tensor) and output.dim() == 1 and not output.is_floating_point():
        tokens = output.tolist()
    elif isinstance(output, list | tuple):
        tokens = output
    else:
        raise UnusableOutputError(f"output {place} is {_kind(output)}, not a list of token ids{_ids_way_out(output)}")
    return tuple(_read_token(token, place, vocabulary_size) for token in tokens)


def _read_token(token: Any, place: int, vocabulary_size: int) -> int:
    if isinstance(token, Tensor) and token.numel() == 1 and not token.is_floating_point():
        token = token.item()
    if isinstance(token, bool) or not isinstance(token, Integral):
        raise UnusableOutputError(f"output {place} holds {_kind(token)} where a token id belongs{_ids_way_out(token)}")
    if not 0 <= int(token) < vocabulary_size:
        raise UnusableOutputError(f"output {place} holds id {int(token)}, outside the vocabulary of {vocabulary_size}")
    return int(token)


def _kind(value: Any) -> str:
    return "nothing (None)" if value is None else f"a {type(value).__name__}"


def _list_way_out(value: Any) -> str:
    """Say how to make a list of outputs of what was returned, where that is known."""
    if isinstance(value, Tensor):
        return "; call .tolist() on it, without prompt and padding"
    if hasattr(value, "sequences"):
        return "; return its .sequences as lists, without prompt and padding"
    return "; end the function with `return`" if value is None else ""


def _ids_way_out(value: Any) -> str:
    """Say how to make token ids of a value, where that is known."""
    if isinstance(value, Tensor):
        return "; token ids are whole numbers" if value.is_floating_point() else "; call .tolist() on each row"
    if isinstance(value, str):
        return "; return text for all prompts or for none"
    return "; a row's own list holds its ids, without another around them" if isinstance(value, list | tuple) else ""
