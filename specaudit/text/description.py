"""A judged case with what a reader and the usual metric make of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specaudit.core.vocabulary import Compared, Verdict
from specaudit.text.output_pair import OutputPair, Vocabulary, Writing
from specaudit.text.rouge import rouge_l
from specaudit.text.symptoms import find_symptoms

if TYPE_CHECKING:
    from specaudit.core.records import CaseResult


def described(case: CaseResult, *, vocabulary: Vocabulary, prompt_text: str | None = None) -> CaseResult:
    """Return `case` with its symptoms and ROUGE-L; one that is unmeasured is returned as it is.

    Ids are looked at where the verdict compares ids. ROUGE-L takes the texts without special tokens where there is a
    tokenizer, and those of the case where there is none.
    """
    if case.verdict is Verdict.UNMEASURED:
        return case
    has_ids = case.compared is Compared.IDS
    pair = OutputPair(
        prompt=Writing(ids=case.prompt_ids or None, text=prompt_text),
        reference=Writing(ids=case.reference_ids if has_ids else None, text=case.reference_text),
        candidate=Writing(ids=case.output_ids if has_ids else None, text=case.output_text),
        vocabulary=vocabulary,
    )
    texts = _plain_text(pair.reference, vocabulary), _plain_text(pair.candidate, vocabulary)
    score = None if texts[0] is None or texts[1] is None else rouge_l(texts[0], texts[1])
    return replace(case, symptoms=find_symptoms(pair), rouge_l=score)


def _plain_text(writing: Writing, vocabulary: Vocabulary) -> str | None:
    if writing.ids is None or vocabulary.plain_text_of is None:
        return writing.text
    return vocabulary.plain_text_of(writing.ids)
