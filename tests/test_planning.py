"""Which combinations a plan amounts to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specaudit.core.errors import UsageError
from specaudit.core.records import case_id
from specaudit.decoders.resolution import resolve_decoder
from specaudit.planning import Arms, plan_arms
from tests.report.sample_runs import PLAN


def arms(*decoders: str, **changes) -> Arms:
    """Return the arms of a plan."""
    return plan_arms(replace(PLAN, decoders=decoders, **changes), [resolve_decoder(name) for name in decoders])


def ids(planned: Arms) -> list[str]:
    """Return the ids of the cases of a prompt."""
    return [case_id(arm, "p") for arm in planned.run]


def test_seeds_are_outermost_and_decoders_that_do_not_speculate_run_once() -> None:
    planned = arms("greedy-batch", "eqspec", batch_sizes=(1, 4), draft_tokens=(2, 4), seeds=(0, 7))
    assert ids(planned) == [
        "greedy-batch/b1/p", "greedy-batch/b4/p",
        "eqspec/b1/k2/s0/p", "eqspec/b1/k4/s0/p", "eqspec/b4/k2/s0/p", "eqspec/b4/k4/s0/p",
        "eqspec/b1/k2/s7/p", "eqspec/b1/k4/s7/p", "eqspec/b4/k2/s7/p", "eqspec/b4/k4/s7/p",
    ]  # fmt: skip
    assert planned.left_out == ()
    assert len(set(planned.run)) == len(planned.run)


def test_ids_do_not_depend_on_what_else_is_planned() -> None:
    alone = arms("eqspec", batch_sizes=(4,), draft_tokens=(4,), seeds=(0,))
    assert set(ids(alone)) <= set(ids(arms("greedy", "eqspec", draft_tokens=(1, 4), seeds=(3, 0))))
    assert ids(arms("greedy", draft_tokens=(1,))) == ids(arms("greedy", draft_tokens=(5, 9), seeds=(4,)))


def test_batch_sizes_that_a_decoder_cannot_take_are_left_out_and_named() -> None:
    planned = arms("eqspec", "hf-assisted", batch_sizes=(1, 4, 8), draft_tokens=(2, 4))
    assert [(one.decoder, one.batch_size) for one in planned.left_out] == [("hf-assisted", 4), ("hf-assisted", 8)]
    assert {one.reason for one in planned.left_out} == {"decodes at most 1 at a time"}
    assert [arm.batch_size for arm in planned.run if arm.decoder == "hf-assisted"] == [1, 1]
    assert {arm.batch_size for arm in planned.run if arm.decoder == "eqspec"} == {1, 4, 8}


def test_a_decoder_may_be_left_out_altogether_beside_others() -> None:
    planned = arms("hf-assisted", "eqspec", batch_sizes=(4,))
    assert {arm.decoder for arm in planned.run} == {"eqspec"}
    assert [one.decoder for one in planned.left_out] == ["hf-assisted"]


def test_nothing_left_is_refused() -> None:
    with pytest.raises(UsageError, match="no batch size is left that 'hf-assisted' can take"):
        arms("hf-assisted", batch_sizes=(4, 8))
