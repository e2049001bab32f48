"""From what `--prompts` says to a prompt set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from specaudit.bundled_files import bundled_folder
from specaudit.core.errors import InputError, UsageError
from specaudit.prompts.jsonl import jsonl_prompts
from specaudit.prompts.prompt_set import PromptSet
from specaudit.prompts.records import read_records
from specaudit.prompts.specbench import is_specbench, specbench_prompts
from specaudit.prompts.text import read_text

if TYPE_CHECKING:
    from specaudit.core.prompt import Prompt

BUNDLED = "bundled"
SPECBENCH_PREFIX = "specbench:"


def load_prompts(spec: str | None, *, field: str | None = None, limit: int | None = None) -> PromptSet:
    """Return the prompts that `spec` names.

    Args:
        spec: None or `bundled` for the bundled set; a `.txt` file (one prompt a line); a `.jsonl` file (a field of
            each object; recognised as SpecBench by its fields, unless `field` is given); or `specbench:FILE`.
        field: field of a `.jsonl` file that holds the prompt; by default `prompt`, `text` or `messages`.
        limit: at most this many prompts, spread over the categories; None for all.

    Raises:
        InputError: the file cannot be read, is malformed or is empty; the message names the line.
        UsageError: the options do not go together, or `limit` is below 1.
    """
    if spec is None or spec == BUNDLED:
        _refuse_field(field, "the bundled prompts")
        loaded = PromptSet(name=BUNDLED, prompts=tuple(_bundled_prompts()))
    elif spec.startswith(SPECBENCH_PREFIX):
        _refuse_field(field, "SpecBench files")
        path = Path(spec.removeprefix(SPECBENCH_PREFIX))
        loaded = PromptSet(name=path.name, prompts=tuple(specbench_prompts(read_records(path))))
    else:
        path = Path(spec)
        loaded = PromptSet(name=path.name, prompts=tuple(_file_prompts(path, field)))
    return loaded if limit is None else loaded.limited(limit)


def _bundled_prompts() -> list[Prompt]:
    records = read_records(bundled_folder("prompts") / "bundled.jsonl")
    return [replace(prompt, source=BUNDLED) for prompt in jsonl_prompts(records)]


def _file_prompts(path: Path, field: str | None) -> list[Prompt]:
    match path.suffix.lower():
        case ".txt":
            _refuse_field(field, "text files")
            return read_text(path)
        case ".jsonl":
            records = read_records(path)
            if field is None and is_specbench(records[0]):
                return specbench_prompts(records)
            return jsonl_prompts(records, field=field)
        case _:
            raise InputError(
                f"cannot tell the format of '{path}' from its ending",
                where="--prompts",
                way_out="give a .txt or .jsonl file, specbench:FILE, or 'bundled'",
            )


def _refuse_field(field: str | None, what: str) -> None:
    if field is not None:
        raise UsageError(f"{what} have no field to choose", where="--field", way_out="leave --field out")
