"""Text files: one prompt a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.prompt import Prompt
from specaudit.prompts.lines import read_lines

if TYPE_CHECKING:
    from pathlib import Path


def read_text(path: Path) -> list[Prompt]:
    """Return one prompt per line that is not blank, spaces at its ends kept, named by its line (`L17`).

    A prompt that itself spans lines needs a `.jsonl` file.

    Raises:
        InputError: the file cannot be read, is not UTF-8 or is empty.
    """
    return [Prompt(prompt_id=line.prompt_id, text=line.text, source=line.where) for line in read_lines(path)]
