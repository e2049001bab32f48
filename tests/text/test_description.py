"""Cases described: what is looked at, which texts ROUGE-L takes, and what a tokenizer is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from specaudit.core.run_directory import RunDirectory
from specaudit.core.vocabulary import Compared, Symptom, Verdict
from specaudit.text.description import described
from specaudit.text.output_pair import Vocabulary
from specaudit.text.tokenizer_vocabulary import vocabulary_of
from tests.cli.command import specaudit
from tests.core.cases import made_case

if TYPE_CHECKING:
    from pathlib import Path

REFERENCE = (5, 6, 7, 8, 2)


@dataclass
class Added:
    special: bool


WORDS = {2: "</s>", 3: "<|user|>", 4: "tab"}


class Tokenizer:
    """Knows words by id, `</s>` as its EOS and a chat's marker that no role names."""

    def __init__(self) -> None:
        self.all_special_ids = [2]
        self.added_tokens_decoder = {2: Added(True), 3: Added(True), 4: Added(False)}

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        shown = [token for token in ids if not (skip_special_tokens and token in {2, 3})]
        return " ".join(WORDS.get(token, f"w{token}") for token in shown)


VOCABULARY = vocabulary_of(Tokenizer(), eos_ids=frozenset({2}), pad_id=0)


def test_special_are_tokens_with_a_role_and_those_added_as_special() -> None:
    assert VOCABULARY.special_ids == {2, 3}
    assert VOCABULARY.text_of is not None
    assert VOCABULARY.plain_text_of is not None
    assert (VOCABULARY.text_of((5, 3, 2)), VOCABULARY.plain_text_of((5, 3, 2))) == ("w5 <|user|> </s>", "w5")


def test_rouge_takes_texts_without_special_tokens() -> None:
    case = described(made_case(reference=REFERENCE, output=(5, 6, 7, 8, 3, 2)), vocabulary=VOCABULARY)
    assert case.rouge_l == 1
    assert [found.symptom for found in case.symptoms] == [Symptom.SYMBOLS]
    (found,) = case.symptoms
    assert (found.onset, found.extent) == (4, 1)


def test_an_identical_case_has_its_score_and_no_symptom() -> None:
    case = described(made_case(reference=(9,) * 40, output=(9,) * 40), vocabulary=VOCABULARY)
    assert (case.symptoms, case.rouge_l) == ((), 1)


def test_a_case_without_a_measured_output_is_left_as_it_is() -> None:
    unmeasured = made_case(output=None)
    assert described(unmeasured, vocabulary=VOCABULARY) is unmeasured
    kept = replace(made_case(reference=REFERENCE, output=(5,)), verdict=Verdict.UNMEASURED)
    assert described(kept, vocabulary=VOCABULARY) is kept


def test_texts_are_looked_at_where_texts_are_compared() -> None:
    case = replace(
        made_case(reference=REFERENCE),
        compared=Compared.TEXT, verdict=Verdict.DIVERGED, output_ids=None, reference_text="It is fine today.",
        output_text="It is", first_divergence=None, partial_match=None,
    )  # fmt: skip
    found = described(case, vocabulary=VOCABULARY)
    assert [(one.symptom, one.onset) for one in found.symptoms] == [(Symptom.TRUNCATION, None)]
    assert found.rouge_l == 2 * 0.5 / 1.5


def test_ids_alone_have_no_score() -> None:
    case = replace(made_case(reference=REFERENCE, output=(5, 6)), reference_text=None, output_text=None)
    found = described(case, vocabulary=Vocabulary())
    assert found.rouge_l is None
    assert [one.symptom for one in found.symptoms] == [Symptom.TRUNCATION]


def test_a_run_describes_its_cases(in_folder: Path) -> None:
    options = ["--decoder", "dsd", "--batch-size", "4", "--limit", "8", "--max-new-tokens", "24", "--out", "run"]
    result = specaudit("run", *options)
    assert result.exit_code == 1
    cases = RunDirectory(in_folder / "run").read_cases()
    diverged = [case for case in cases if case.verdict is Verdict.DIVERGED]
    assert diverged
    assert any(case.symptoms for case in diverged)
    assert any(case.rouge_l is not None for case in diverged)
    assert all(case.rouge_l in {1, None} and not case.symptoms for case in cases if case not in diverged)
    words = " ".join(result.stdout.split())
    assert "symptoms: repetition " in words
    assert "ROUGE-L scores " in words
