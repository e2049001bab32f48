"""Prompt echo: the output begins with the prompt, or with its end.

A decoder that returns the whole row repeats the prompt; one that cuts rows of different lengths at the same place
repeats the ends of the longer prompts. From LEAST_TOKENS tokens on (LEAST_CHARACTERS characters where only texts are
known) the agreement counts, if it is longer than the reference's own: models echo too. The extent is in tokens or
characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specaudit.core.records import SymptomFinding
from specaudit.core.vocabulary import Symptom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.text.output_pair import OutputPair

LEAST_TOKENS = 4
"""One or two tokens agree by chance (a newline, a role's name); four in order do not."""

LEAST_CHARACTERS = 16
"""About four tokens of English."""


def find_prompt_echo(pair: OutputPair) -> SymptomFinding | None:
    """Return that the candidate begins with the end of the prompt, or None."""
    if pair.prompt is None:
        return None
    prompt, candidate, reference = pair.prompt, pair.candidate, pair.reference
    if prompt.ids is not None and candidate.ids is not None and reference.ids is not None:
        return _finding(prompt.ids, candidate.ids, reference.ids, least=LEAST_TOKENS, unit="tokens", onset=0)
    if prompt.text is not None and candidate.text is not None and reference.text is not None:
        texts = (text.strip() for text in (prompt.text, candidate.text, reference.text))
        return _finding(*texts, least=LEAST_CHARACTERS, unit="characters", onset=None)
    return None


def _finding(
    prompt: Sequence[object],
    candidate: Sequence[object],
    reference: Sequence[object],
    *,
    least: int,
    unit: str,
    onset: int | None,
) -> SymptomFinding | None:
    echoed, excused = echo_length(prompt, candidate), echo_length(prompt, reference)
    if echoed < least or echoed <= excused:
        return None
    return SymptomFinding(
        symptom=Symptom.PROMPT_ECHO,
        onset=onset,
        extent=echoed,
        reference_extent=excused,
        what=f"begins with the last {echoed} of {len(prompt)} {unit} of the prompt",
    )


def echo_length(prompt: Sequence[object], output: Sequence[object]) -> int:
    """Return how long the longest end of `prompt` is that `output` begins with.

    Linear in both: the failure function of Knuth, Morris and Pratt (1977) over output, a mark, prompt.
    """
    mark = object()
    joined = [*output[: len(prompt)], mark, *prompt]
    borders = [0] * len(joined)
    for place in range(1, len(joined)):
        border = borders[place - 1]
        while border and joined[place] != joined[border]:
            border = borders[border - 1]
        borders[place] = border + (joined[place] == joined[border])
    return borders[-1] if len(prompt) else 0
