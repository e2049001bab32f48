"""All symptoms of one output.

A symptom describes, it does not judge: the verdict is the comparison's. Small models loop and stammer by themselves, so
the reference's own output for the prompt excuses as much of a symptom as it has itself; an output that equals the
reference has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.text.emptiness import find_emptiness
from specaudit.text.leak import find_leak
from specaudit.text.prompt_echo import find_prompt_echo
from specaudit.text.repetition import find_repetition
from specaudit.text.symbols import find_symbols
from specaudit.text.truncation import find_truncation

if TYPE_CHECKING:
    from specaudit.core.records import SymptomFinding
    from specaudit.text.output_pair import OutputPair

FINDERS = (find_repetition, find_symbols, find_truncation, find_emptiness, find_leak, find_prompt_echo)
"""One a symptom, in the order of the vocabulary."""


def find_symptoms(pair: OutputPair) -> tuple[SymptomFinding, ...]:
    """Return the candidate's symptoms, at most one of each kind, in the order of the vocabulary."""
    if pair.is_equal():
        return ()
    return tuple(found for find in FINDERS if (found := find(pair)) is not None)
