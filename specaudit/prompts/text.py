"""Text: one prompt a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.prompt import Prompt
from specaudit.prompts.lines import line_id, numbered_lines

if TYPE_CHECKING:
    from specaudit.prompts.document import Document


def text_prompts(document: Document) -> list[Prompt]:
    """Return one prompt per line that is not blank, spaces at its ends kept, named by its line (`L17`).

    A prompt that itself spans lines needs a `.jsonl` or `.csv` file.
    """
    return [
        Prompt(prompt_id=line_id(line.number), text=line.text, source=line.where) for line in numbered_lines(document)
    ]
