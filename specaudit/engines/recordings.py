"""Recordings: what some engine answered, one JSON object a line.

    {"id": "q1", "prompt_ids": [1, 5, 9], "output_ids": [7, 2], "text": "Yes"}

`id` names the prompt, `prompt_ids` or `prompt` say what was asked, `output_ids` or `text` what came back; where there
are both, ids count. Optional: `category`, `error` (the engine failed: no output), `model`. The samples of a run are
read as well: `case_id` stands for `id`, `output_text` for `text`, and which decoder and batch they ran in is kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specaudit.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

ID_FIELDS = ("id", "case_id")
TEXT_FIELDS = ("text", "output_text")
OUTPUT_FIELDS = ("output_ids", *TEXT_FIELDS)

FORM = 'a line is {"id": "q1", "prompt_ids": [1, 5], "output_ids": [7, 2]}; prompt and text may stand for the ids.'
"""What a line looks like, for messages."""

SHOWN_CHARACTERS = 60
"""Most characters of a value shown in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Where in a run an output was made."""

    decoder: str
    """Decoder as named on the command line."""

    batch_size: int
    """Planned rows a batch, at least 1."""

    draft_tokens: int | None
    """Planned draft length K, or None for a decoder that does not speculate."""

    seed: int | None
    """Seed of draft and decoder, or None for a decoder that does not speculate."""

    unit: int
    """Unit of the arm, counted from 0."""

    call: int
    """Decoder call within the unit, counted from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOutput:
    """One line of a recording."""

    record_id: str
    """Identifier, unique in its recording."""

    where: str
    """`FILE:LINE`, for messages."""

    prompt_ids: tuple[int, ...] | None
    """Token ids of the prompt, or None where they were not recorded."""

    prompt: str | None
    """Text of the prompt, or None where it was not recorded."""

    output_ids: tuple[int, ...] | None
    """Generated token ids, or None where they were not recorded."""

    text: str | None
    """Generated text, or None where it was not recorded."""

    error: str | None
    """Why there is no usable output, or None."""

    category: str | None
    """Category of the prompt, or None."""

    model: str | None
    """Model as the engine named it, or None."""

    batch: Batch | None
    """Where in a run it was made, or None outside runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A file of outputs."""

    name: str
    """Path as given."""

    outputs: Mapping[str, RecordedOutput]
    """Lines by id, in the order of the file; at least one."""


def read_recording(path: Path) -> Recording:
    """Return the recording in a JSON Lines file, or in the `samples.jsonl` of a run directory.

    Raises:
        InputError: the file is missing, unreadable, not UTF-8 or empty; a line is not an object of the form above; an
            id is given twice; or no line at all has a field for its output.
    """
    name = str(path)
    file = path / "samples.jsonl" if path.is_dir() else path
    outputs: dict[str, RecordedOutput] = {}
    has_output_field = False
    for number, line in enumerate(_text(file).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{file}:{number}"
        fields = _fields(line, where)
        output = _output(fields, where)
        if output.record_id in outputs:
            raise InputError(
                f"id '{printable(output.record_id)}' is given twice, first at {outputs[output.record_id].where}",
                where=where,
                way_out="give each output an id of its own.",
            )
        outputs[output.record_id] = output
        has_output_field = has_output_field or any(field in fields for field in (*OUTPUT_FIELDS, "error"))
    if not outputs:
        raise InputError("the recording is empty", where=str(file), way_out=FORM)
    if not has_output_field:
        raise InputError("no line has output_ids or text", where=str(file), way_out=FORM)
    return Recording(name=name, outputs=outputs)


def printable(text: str) -> str:
    """Return `text` for a message, escaped where it holds characters that a terminal acts on or nobody sees."""
    shown = text if text.isprintable() else ascii(text)[1:-1]
    return shown if len(shown) <= SHOWN_CHARACTERS else shown[: SHOWN_CHARACTERS - 1] + "…"


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the recording cannot be read: {error.strerror or error}",
            where=str(path),
            way_out="name a .jsonl file with one output a line, or a run directory.",
        ) from error
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"byte 0x{content[error.start]:02x} is not UTF-8", where=f"{path}:{line}", way_out="save the file as UTF-8."
        ) from error


def _fields(line: str, where: str) -> dict[str, Any]:
    def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"field '{printable(twice)}' is given twice", where=where, way_out=FORM)
        return fields

    try:
        fields = json.loads(line, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at column {error.colno}", where=where, way_out=FORM) from error
    except (RecursionError, ValueError) as error:  # nested too deeply; a number of too many digits
        raise InputError(f"not usable JSON: {error}", where=where, way_out=FORM) from error
    if not isinstance(fields, dict):
        raise InputError(f"not a JSON object but {_shown(fields)}", where=where, way_out=FORM)
    return fields


def _output(fields: Mapping[str, Any], where: str) -> RecordedOutput:
    prompt_ids, prompt = _ids(fields, "prompt_ids", where), _string(fields, ("prompt",), where)
    if prompt_ids is None and prompt is None:
        raise InputError(f"no prompt_ids and no prompt; fields found: {_names(fields)}", where=where, way_out=FORM)
    output_ids, text = _ids(fields, "output_ids", where), _string(fields, TEXT_FIELDS, where)
    error = _string(fields, ("error",), where) or None
    if error is None and output_ids is None and text is None:
        error = "no output was recorded"
    return RecordedOutput(
        record_id=_id(fields, where),
        where=where,
        prompt_ids=prompt_ids,
        prompt=prompt,
        output_ids=output_ids,
        text=text,
        error=error,
        category=_string(fields, ("category",), where) or None,
        model=_string(fields, ("model",), where) or None,
        batch=_batch(fields, where),
    )


def _id(fields: Mapping[str, Any], where: str) -> str:
    name = next((name for name in ID_FIELDS if fields.get(name) is not None), None)
    if name is None:
        raise InputError(f"no id; fields found: {_names(fields)}", where=where, way_out=FORM)
    value = fields[name]
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"'{name}' is {_shown(value)}, not a text or an integer", where=where, way_out=FORM)
    return _well_formed(value, name, where)


def _ids(fields: Mapping[str, Any], name: str, where: str) -> tuple[int, ...] | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, list):
        raise InputError(f"'{name}' is {_shown(value)}, not a list of token ids", where=where, way_out=FORM)
    for place, token in enumerate(value):
        if isinstance(token, bool) or not isinstance(token, int) or token < 0:
            raise InputError(
                f"'{name}' holds {_shown(token)} at place {place}, not a token id", where=where, way_out=FORM
            )
    return tuple(value)


def _string(fields: Mapping[str, Any], names: Sequence[str], where: str) -> str | None:
    """Return the first of the named fields that is there and not null."""
    name = next((name for name in names if fields.get(name) is not None), None)
    if name is None:
        return None
    value = fields[name]
    if not isinstance(value, str):
        raise InputError(f"'{name}' is {_shown(value)}, not a text", where=where, way_out=FORM)
    return _well_formed(value, name, where)


def _well_formed(text: str, name: str, where: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"'{name}' has half of a surrogate pair at character {error.start}",
            where=where,
            way_out="write the character itself, or both halves.",
        ) from error
    return text


def _batch(fields: Mapping[str, Any], where: str) -> Batch | None:
    """Return where in a run a line of its samples was made; a recording that says less says nothing."""
    if "case_id" not in fields:
        return None
    numbers = {name: fields.get(name) for name in ("batch_size", "draft_tokens", "seed", "unit", "call")}
    odd = next((name for name, value in numbers.items() if value is not None and type(value) is not int), None)
    if odd is not None or None in (numbers["batch_size"], numbers["unit"], numbers["call"]):
        name = odd or next(name for name in ("batch_size", "unit", "call") if numbers[name] is None)
        raise InputError(
            f"'{name}' is {_shown(numbers[name])}, not a whole number",
            where=where,
            way_out="take the samples.jsonl as the run wrote it, or name outputs by 'id' instead of 'case_id'.",
        )
    decoder = _string(fields, ("decoder",), where) or "unnamed"
    return Batch(decoder=decoder, **numbers)  # type: ignore[arg-type]


def _names(fields: Mapping[str, Any]) -> str:
    return printable(", ".join(fields)) or "none"


def _shown(value: Any) -> str:
    return printable(json.dumps(value))
