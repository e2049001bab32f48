import torch

from specaudit.decoders.acceptance import accepted_counts, committed_tokens
from specaudit.decoders.rows import Row, start_rows


def test_eos_in_the_prompt_is_no_end() -> None:
    (row,) = start_rows([[2, 2]], budget=3, eos_token_ids={2})
    assert not row.is_finished
    row.commit([4, 2, 5])
    assert row.output == [4, 2]
    assert row.is_finished


def test_the_budget_cuts_and_nothing_follows_the_end() -> None:
    row = Row(index=0, prompt=[1], budget=2, eos_token_ids={9})
    row.commit([3, 4, 5])
    row.commit([6])
    assert row.output == [3, 4]
    assert row.stream == [1, 3, 4]
    assert row.length == 3


def test_accept_rule_takes_matching_prefixes_and_the_bonus() -> None:
    predictions = torch.tensor([[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]])
    proposals = torch.tensor([[9, 2, 3], [1, 9, 3], [1, 2, 3]])
    counts = accepted_counts(proposals, predictions)
    assert counts.tolist() == [0, 1, 3]
    assert committed_tokens(proposals, predictions, counts) == [[1], [1, 2], [1, 2, 3, 4]]
