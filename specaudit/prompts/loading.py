"""From what `--prompts` says to a prompt set."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from specaudit.bundled_files import bundled_folder
from specaudit.core.errors import InputError, UsageError
from specaudit.prompts.document import FORMS, read_document, read_standard_input
from specaudit.prompts.fields import TEXT_FIELDS, FieldNames, record_prompts
from specaudit.prompts.json_array import json_array_records
from specaudit.prompts.json_lines import json_lines_records
from specaudit.prompts.prompt_set import BUNDLED, BUNDLED_SIZES, PromptSet
from specaudit.prompts.specbench import LAST_TURN, first_turns, is_specbench, second_turns
from specaudit.prompts.table import table_records
from specaudit.prompts.text import text_prompts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.core.prompt import Prompt
    from specaudit.prompts.document import Document
    from specaudit.prompts.records import Record

STANDARD_INPUT = "-"
SPECBENCH_PREFIX = "specbench:"
DELIMITERS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """How a source is to be read."""

    names: FieldNames = field(default_factory=FieldNames)
    turn: int = 1

    def of_texts(self, what: str) -> None:
        """Raise UsageError where something is asked for that plain texts do not have."""
        for option, name in (("--field", self.names.prompt), ("--gold-field", self.names.gold)):
            if name is not None:
                raise UsageError(f"{what} have no field to choose", where=option, way_out=f"leave {option} out")
        self.of_one_turn(what)

    def of_one_turn(self, what: str) -> None:
        """Raise UsageError where a second turn is asked of something that is no SpecBench file."""
        if self.turn != 1:
            raise UsageError(
                f"{what} have no second turns, SpecBench files have",
                where=f"--turn {self.turn}",
                way_out="give --prompts specbench:FILE, or leave --turn out",
            )


def load_prompts(
    spec: str | None,
    *,
    field: str | None = None,
    gold_field: str | None = None,
    turn: int = 1,
    categories: Sequence[str] | None = None,
    sample: int | None = None,
    seed: int = 0,
    limit: int | None = None,
) -> PromptSet:
    """Return the prompts that `spec` names, reduced to the categories and then to the sample or limit asked for.

    Args:
        spec: None or `bundled` for the 24 bundled prompts that runs use by default, `bundled:96` for all; a `.txt` file
            (one prompt a line); a `.jsonl` file (a field of each object; recognised as SpecBench by its fields, unless
            `field` is given); a `.json` file (an array of chats); a `.csv` or `.tsv` file (a column); `-` for standard
            input (JSON Lines where it begins with `{`, else one prompt a line); or `specbench:FILE`.
        field: field or column that holds the prompt; by default `prompt`, `text` and, in JSON, `messages` or
            `conversations`.
        gold_field: field or column that holds the gold answer; by default `gold`, `answer` or `reference`.
        turn: 2 for the second turns of SpecBench questions, left open until the reference has answered the first.
        categories: keep these alone; None for all.
        sample: at most this many prompts, drawn at random with `seed`; None for all.
        seed: what the sample depends on besides the number of prompts.
        limit: at most this many prompts, spread over the categories; None for all.

    Raises:
        InputError: the source cannot be read, is malformed or is empty; the message names the line.
        UsageError: the options do not go together, `limit` or `sample` is below 1, or a category is unknown.
    """
    if sample is not None and limit is not None:
        raise UsageError("--sample and --limit exclude each other", way_out="give one of them.")
    if turn not in range(1, LAST_TURN + 1):
        raise UsageError(
            f"there is no turn {turn}", where="--turn", way_out="give 1 or 2, the turns that SpecBench questions have"
        )
    reading = _Reading(names=FieldNames(prompt=field, gold=gold_field), turn=turn)
    loaded = _read(BUNDLED if spec is None else spec, reading)
    if categories is not None:
        loaded = loaded.in_categories(categories)
    if sample is not None:
        loaded = loaded.sampled(sample, seed=seed)
    return loaded if limit is None else loaded.limited(limit)


def _read(spec: str, reading: _Reading) -> PromptSet:
    if spec == BUNDLED or spec.startswith(f"{BUNDLED}:"):
        return _bundled(spec, reading)
    if spec == STANDARD_INPUT:
        document = read_standard_input()
        is_json = document.text.lstrip().startswith("{")
        return _set("standard input", _json_lines(document, reading) if is_json else _texts(document, reading))
    if spec.startswith(SPECBENCH_PREFIX):
        if reading.names.prompt is not None:
            raise UsageError("SpecBench files have no field to choose", where="--field", way_out="leave --field out")
        path = Path(spec.removeprefix(SPECBENCH_PREFIX))
        return _set(path.name, _specbench(json_lines_records(read_document(path)), reading))
    path = Path(spec)
    return _set(path.name, _file_prompts(path, reading))


def _set(name: str, prompts: Sequence[Prompt]) -> PromptSet:
    return PromptSet(name=name, prompts=tuple(prompts))


def _bundled(name: str, reading: _Reading) -> PromptSet:
    reading.of_texts("the bundled prompts")
    if name not in BUNDLED_SIZES:
        raise InputError(
            f"there is no bundled prompt set '{name}'",
            where="--prompts",
            way_out="known: " + ", ".join(f"{known} ({size} prompts)" for known, size in BUNDLED_SIZES.items()),
        )
    records = json_lines_records(read_document(bundled_folder("prompts") / "bundled.jsonl"))
    prompts = record_prompts(records[: BUNDLED_SIZES[name]], reading.names)
    return _set(name, [replace(prompt, source=BUNDLED) for prompt in prompts])


def _file_prompts(path: Path, reading: _Reading) -> list[Prompt]:
    match path.suffix.lower():
        case ".txt":
            return _texts(read_document(path), reading)
        case ".jsonl":
            return _json_lines(read_document(path), reading)
        case ".json":
            reading.of_one_turn("JSON arrays")
            return record_prompts(json_array_records(read_document(path)), reading.names)
        case (".csv" | ".tsv") as ending:
            reading.of_one_turn("tables")
            records = table_records(read_document(path), delimiter=DELIMITERS[ending])
            return record_prompts(records, reading.names, default_fields=TEXT_FIELDS)
        case _:
            raise InputError(
                f"cannot tell the format of '{path}' from its ending", where="--prompts", way_out=f"give {FORMS}"
            )


def _texts(document: Document, reading: _Reading) -> list[Prompt]:
    reading.of_texts("plain texts")
    return text_prompts(document)


def _json_lines(document: Document, reading: _Reading) -> list[Prompt]:
    records = json_lines_records(document)
    if reading.names.prompt is None and is_specbench(records[0]):
        return _specbench(records, reading)
    reading.of_one_turn("JSON Lines")
    return record_prompts(records, reading.names)


def _specbench(records: Sequence[Record], reading: _Reading) -> list[Prompt]:
    turns = first_turns if reading.turn == 1 else second_turns
    return turns(records, gold_field=reading.names.gold)
