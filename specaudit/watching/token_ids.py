"""Token ids as a script has them: lists, tuples or one-dimensional arrays, one a prompt, padding already removed.

What is something else is named, with the way to make lists of it; nothing is guessed, since padding cannot be told from
tokens by its value.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

from specaudit.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

Role = Literal["prompts", "outputs"]

WITHOUT_PADDING = {
    "prompts": "give one list a prompt, without padding:"
    " [row[kept.bool()].tolist() for row, kept in zip(input_ids, attention_mask)].",
    "outputs": "give one list a prompt, without padding and with nothing after its end of sequence; of what generate()"
    " returns for left-padded input_ids: [row[input_ids.shape[1]:].tolist() for row in generated], each one cut there.",
}
"""How to make lists of the ids in a rectangle."""


def read_rows(rows: Any, role: Role) -> list[tuple[int, ...]]:
    """Return the ids of each prompt or output; raise UsageError for anything but one row of ids each."""
    if getattr(rows, "ndim", None) is not None:
        if rows.ndim == 1:
            raise _not_nested(role)
        shape = " x ".join(map(str, rows.shape))
        raise UsageError(
            f"{role} come as one array of {shape}, in which padding cannot be told from tokens",
            where=role,
            way_out=WITHOUT_PADDING[role],
        )
    if not isinstance(rows, list | tuple):
        raise UsageError(f"{role} come as a {type(rows).__name__}", where=role, way_out=WITHOUT_PADDING[role])
    if rows and all(isinstance(row, Integral) for row in rows):
        raise _not_nested(role)
    return [_read_row(row, f"{role[:-1]} {place}", role) for place, row in enumerate(rows)]


def without_prompts(outputs: Sequence[tuple[int, ...]], prompts: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return outputs that begin with their prompts without them; raise UsageError for one that does not."""
    for place, (prompt, output) in enumerate(zip(prompts, outputs, strict=True)):
        if output[: len(prompt)] != prompt:
            raise UsageError(
                f"output {place} does not begin with its prompt",
                where="outputs",
                way_out="remove padding on the left of it, or leave outputs_include_prompt out.",
            )
    return [output[len(prompt) :] for prompt, output in zip(prompts, outputs, strict=True)]


def all_begin_with_prompts(outputs: Sequence[tuple[int, ...]], prompts: Sequence[tuple[int, ...]]) -> bool:
    """Return whether every output begins with its prompt."""
    return all(output[: len(prompt)] == prompt for prompt, output in zip(prompts, outputs, strict=True))


def _not_nested(role: Role) -> UsageError:
    return UsageError(
        f"{role} are one row of ids, not a list of rows", where=role, way_out=f"put it into a list: [{role[:-1]}]."
    )


def _read_row(row: Any, name: str, role: Role) -> tuple[int, ...]:
    if isinstance(row, str):
        raise UsageError(f"{name} is text", where=role, way_out="give token ids: what was fed, and what was returned.")
    if getattr(row, "ndim", 1) != 1 or not (isinstance(row, list | tuple) or hasattr(row, "tolist")):
        kind = f"an array of {' x '.join(map(str, row.shape))}" if hasattr(row, "shape") else f"a {type(row).__name__}"
        raise UsageError(f"{name} is {kind}, not a row of ids", where=role, way_out=WITHOUT_PADDING[role])
    ids = row if isinstance(row, list | tuple) else row.tolist()
    for token in ids:
        if isinstance(token, bool) or not isinstance(token, Integral) or token < 0:
            raise UsageError(
                f"{name} holds {str(token)[:40]!r} where a token id belongs",
                where=role,
                way_out="token ids are whole numbers from 0 on; in lists they are plain ints: call .tolist().",
            )
    if role == "prompts" and not ids:
        raise UsageError(f"{name} is empty", where=role, way_out="give what was fed for it, BOS included.")
    return tuple(int(token) for token in ids)
