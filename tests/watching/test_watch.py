"""`specaudit.watch` in a script: what is certified, what is not and why, and that the model is left as it was."""

from __future__ import annotations

import copy
import subprocess
import sys
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any

import pytest
import torch

import specaudit
from specaudit.core.errors import UsageError
from specaudit.core.vocabulary import Cause, Check, Sync
from specaudit.faults.authority import uncached_greedy
from specaudit.faults.legal import plain_loop
from specaudit.faults.random_models import random_draft, random_model
from specaudit.watching.report import NotCertifiedError, WatchReport
from tests.checks.batches import RandomBatch, make_draft
from tests.checks.faulty import Broken, Forward
from tests.trace.test_recorder import installed
from tests.variants import generated
from tests.variants.shared_modules import shared_layers

if TYPE_CHECKING:
    from collections.abc import Callable

    from specaudit.watching.watch import Watch

PROMPTS = ((5, 9, 11, 14, 3, 8), (7, 30, 2), (12, 9, 33, 50))
BATCH = RandomBatch(
    architecture="llama",
    vocabulary=64,
    prompts=PROMPTS,
    max_new_tokens=14,
    draft_tokens=3,
    eos=63,
    pad=1,
    draft="stress:0.5",
)


EXPECTED = [uncached_greedy(random_model("llama"), prompt, max_new_tokens=14) for prompt in PROMPTS]
"""What the stress draft makes its proposals of; decoded here, since it must not happen under the watch."""


def decoded(decode: Callable[..., Any], model: Any = None, draft: Any = None, eos: set[int] | None = None) -> Any:
    """Decode the prompts with a decoder of the usual signature."""
    model = random_model("llama") if model is None else model
    return decode(
        model,
        make_draft(BATCH, EXPECTED) if draft is None else draft,
        None,
        [list(prompt) for prompt in PROMPTS],
        max_new_tokens=14,
        draft_tokens=3,
        eos_token_ids=eos or set(),
        pad_token_id=1,
    )


def watched(decode: Callable[..., Any], model: Any = None, **options: Any) -> tuple[Watch, Any]:
    """Decode the prompts under a watch; return it and the outputs."""
    model = random_model("llama") if model is None else model
    with specaudit.watch(model) as trace:
        outputs = decoded(decode, model, **options)
    return trace, outputs


def test_a_correct_decoder_is_certified() -> None:
    trace, outputs = watched(Broken().decode)
    report = trace.report(PROMPTS, outputs)
    report.require_certified()
    assert report.is_certified
    assert report.sync is Sync.CERTIFIED
    assert [case.sync for case in report.cases] == [Sync.CERTIFIED] * 3
    assert [case.warranted_tokens for case in report.cases] == [14] * 3
    assert (report.findings, report.causes, report.notes) == ((), (), ())
    assert report.cases[1].prompt_ids == PROMPTS[1]
    assert report.cases[1].output_ids == tuple(outputs[1])
    assert str(report).splitlines() == [
        "specaudit: certified: 3 of 3 outputs; 42 of 42 tokens warranted; 8 forwards of",
        "  LlamaForCausalLM watched",
    ]
    with pytest.raises(FrozenInstanceError):
        report.forwards = 0  # type: ignore[misc]


def without_positions(forward: Forward) -> None:
    forward.position_ids = None


def test_without_position_ids_the_shorter_rows_are_violated() -> None:
    trace, outputs = watched(Broken(forward=without_positions).decode)
    report = trace.report(PROMPTS, outputs)
    assert [case.sync for case in report.cases] == [Sync.CERTIFIED, Sync.VIOLATED, Sync.VIOLATED]
    assert report.sync is Sync.VIOLATED
    finding = report.cases[1].findings[0]
    assert (finding.check, finding.step, finding.row, finding.actual) == (Check.POS, 0, 1, 3)
    (cause,) = report.cases[1].causes
    assert cause.cause is Cause.POSITIONS_SHARED
    assert report.cases[1].warranted_tokens is not None
    assert report.cases[1].warranted_tokens < 14
    with pytest.raises(NotCertifiedError, match="positions-shared-across-rows") as raised:
        report.require_certified()
    assert isinstance(raised.value, AssertionError)
    assert "POS at step 0, row 1, query 3" in str(report)
    assert max(map(len, str(report).splitlines())) <= 80


def test_generate_of_transformers_is_certified() -> None:
    trace, outputs = watched(generated.decode)
    trace.report(PROMPTS, outputs).require_certified()


def test_what_generate_returns_is_taken_as_it_is_once_padding_is_off() -> None:
    model = random_model("llama")
    with specaudit.watch(model) as trace:
        rows = [model.generate(torch.tensor([prompt]), max_new_tokens=6, do_sample=False)[0] for prompt in PROMPTS]
    with pytest.raises(UsageError, match="every output begins with its prompt"):
        trace.report(PROMPTS, rows)
    report = trace.report([torch.tensor(prompt) for prompt in PROMPTS], rows, outputs_include_prompt=True)
    report.require_certified()
    assert report.cases[2].output_ids == tuple(rows[2][4:].tolist())


def test_an_output_changed_after_the_fact_is_found() -> None:
    trace, outputs = watched(Broken().decode)
    trace.report(PROMPTS, outputs).require_certified()
    outputs[2][9] = (outputs[2][9] + 1) % 64
    report = trace.report(PROMPTS, outputs)
    assert [case.is_certified for case in report.cases] == [True, True, False]
    (finding,) = report.findings
    assert (finding.check, finding.stream_index) == (Check.WARRANT, 4 + 9)
    assert finding.actual == outputs[2][9]
    assert report.cases[2].warranted_tokens == 9


def test_a_permuted_output_is_not_certified() -> None:
    trace, outputs = watched(Broken().decode)
    report = trace.report(PROMPTS, [outputs[1], outputs[0], outputs[2]])
    assert [case.is_certified for case in report.cases] == [False, False, True]


def test_several_calls_are_reported_together() -> None:
    model = random_model("llama")
    broken = Broken(forward=without_positions)
    with specaudit.watch(model) as trace:
        first = decoded(Broken().decode, model)
        trace.report(PROMPTS, first).require_certified()
        second = decoded(broken.decode, model)
    report = trace.report([*PROMPTS, *PROMPTS], [*first, *second])
    assert not report.is_certified  # the sound twin does not stand in for the broken one
    left_out = trace.report(PROMPTS, first)
    assert left_out.cases[0].is_certified


def test_forwards_that_belong_to_no_prompt_are_noted() -> None:
    model = random_model("llama")
    with specaudit.watch(model) as trace:
        outputs = decoded(Broken().decode, model)
        model(torch.tensor([[40, 41, 42, 43]]))
    report = trace.report(PROMPTS, outputs)
    report.require_certified()
    (note,) = report.notes
    assert note.startswith("1 of 9 forwards, the first step 8, fed no token of these prompts")
    assert "note: 1 of 9 forwards" in str(report)


def test_a_draft_that_shares_modules_disturbs_nothing() -> None:
    model = random_model("llama")
    trace, outputs = watched(Broken().decode, model, draft=shared_layers(model, 2))
    trace.report(PROMPTS, outputs).require_certified()


def test_two_models_are_watched_at_once() -> None:
    target, draft = random_model("llama"), random_draft("llama", 0.05)
    with specaudit.watch(target) as outer, specaudit.watch(draft) as inner:
        theirs = decoded(plain_loop.decode, draft)
        outputs = decoded(Broken().decode, target)
    outer.report(PROMPTS, outputs).require_certified()
    inner.report(PROMPTS, theirs).require_certified()
    assert not inner.report(PROMPTS, outputs).is_certified


@pytest.mark.parametrize("raises", [False, True])
def test_the_model_is_left_as_it_was(raises: bool) -> None:
    model = random_model("llama")
    before = installed(model)
    ids = torch.tensor([[5, 9, 11]])
    with torch.no_grad():
        logits = model(ids).logits
        try:
            with specaudit.watch(model):
                assert installed(model) != before
                assert torch.equal(model(ids).logits, logits)
                if raises:
                    raise RuntimeError
        except RuntimeError:
            assert raises
    assert installed(model) == before


def test_what_cannot_be_observed_says_why() -> None:
    trace, outputs = watched(plain_loop.decode, random_model("bloom"))
    report = trace.report(PROMPTS, outputs)
    assert report.sync is Sync.UNOBSERVED
    assert report.cases[0].sync_reason
    assert report.cases[0].sync_reason.split()[0] in str(report)
    with pytest.raises(NotCertifiedError):
        report.require_certified()


def test_training_mode_is_unobserved() -> None:
    model = copy.deepcopy(random_model("llama")).train()
    trace, outputs = watched(plain_loop.decode, model)
    report = trace.report(PROMPTS, outputs)
    assert report.sync is Sync.UNOBSERVED
    assert "model.eval()" in str(report)
    assert report.cases[0].warranted_tokens is None


def test_weights_that_change_are_unobserved() -> None:
    model = copy.deepcopy(random_model("llama"))
    with specaudit.watch(model) as trace:
        outputs = decoded(plain_loop.decode, model)
        model.lm_head.weight.mul_(1.5)
        during = trace.report(PROMPTS, outputs)
    for report in (during, trace.report(PROMPTS, outputs)):
        assert report.sync is Sync.UNOBSERVED
        assert "weights of the model were changed" in str(report)


def test_padding_after_the_end_of_sequence() -> None:
    trace, outputs = watched(Broken().decode)
    end = outputs[1][4]
    stop = outputs[1].index(end) + 1
    padded = [outputs[0], [*outputs[1][:stop], 1, 1, 1], outputs[2]]
    with pytest.raises(UsageError, match="output 1 has 3 times id 1 after its end of sequence"):
        trace.report(PROMPTS, padded, eos_token_ids=end)
    report = trace.report(PROMPTS, padded)
    assert not report.is_certified
    assert any(note.startswith("output 1 ends in 3 times id 1") for note in report.notes)
    report = trace.report(PROMPTS[1:2], [outputs[1][:stop]], eos_token_ids={end})
    assert report.is_certified


def test_an_output_that_goes_on_after_its_end() -> None:
    trace, outputs = watched(Broken().decode)
    report = trace.report(PROMPTS, outputs, eos_token_ids=[outputs[1][4]])
    case = report.cases[1]
    assert case.sync is Sync.VIOLATED
    assert case.causes[0].cause is Cause.MISSED_EOS
    assert f"is the end of sequence {outputs[1][4]}" in str(report)


def test_gradients_may_be_on() -> None:
    model = copy.deepcopy(random_model("llama")).requires_grad_(True)
    with specaudit.watch(model) as trace:
        outputs = []
        for prompt in PROMPTS:
            ids = list(prompt)
            for _ in range(4):
                ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
            outputs.append(ids[len(prompt) :])
    trace.report(PROMPTS, outputs).require_certified()


WRONG_ROWS: dict[str, tuple[Any, Any, str]] = {
    "fewer outputs": (PROMPTS, PROMPTS[:2], "2 outputs for 3 prompts"),
    "none": ([], [], "no prompts"),
    "a rectangle": (torch.ones(3, 4, dtype=torch.long), PROMPTS, "prompts come as one array of 3 x 4"),
    "a rectangle of outputs": (PROMPTS, torch.ones(3, 4, dtype=torch.long), "outputs come as one array of 3 x 4"),
    "not nested": ([1, 2, 3], [[4]], "prompts are one row of ids"),
    "not nested tensor": ([[1]], torch.tensor([1, 2]), "outputs are one row of ids"),
    "text": (["hello"], [[1]], "prompt 0 is text"),
    "rows of one row": ([torch.ones(1, 4, dtype=torch.long)], [[1]], "prompt 0 is an array of 1 x 4"),
    "nested twice": ([[[1, 2]]], [[1]], "prompt 0 holds '\\[1, 2\\]'"),
    "floats": ([torch.ones(3)], [[1]], "prompt 0 holds '1.0'"),
    "ignored labels": ([[1, -100]], [[1]], "prompt 0 holds '-100'"),
    "an empty prompt": ([[]], [[1]], "prompt 0 is empty"),
    "a mapping": ({"input_ids": 1}, [[1]], "prompts come as a dict"),
}


@pytest.mark.parametrize("what", WRONG_ROWS)
def test_rows_that_cannot_be_meant_are_refused(what: str) -> None:
    prompts, outputs, message = WRONG_ROWS[what]
    with specaudit.watch(random_model("llama")) as trace:
        pass
    with pytest.raises(UsageError, match=message) as raised:
        trace.report(prompts, outputs)
    assert raised.value.way_out


def test_outputs_that_do_not_include_the_prompt() -> None:
    trace, outputs = watched(Broken().decode)
    with pytest.raises(UsageError, match="output 0 does not begin with its prompt"):
        trace.report(PROMPTS, outputs, outputs_include_prompt=True)
    echo = [[*prompt] for prompt in PROMPTS]
    assert isinstance(trace.report(PROMPTS, echo, outputs_include_prompt=False), WatchReport)


def test_an_empty_output_is_unobserved() -> None:
    trace, outputs = watched(Broken().decode)
    report = trace.report(PROMPTS, [outputs[0], [], outputs[2]])
    assert [case.sync for case in report.cases] == [Sync.CERTIFIED, Sync.UNOBSERVED, Sync.CERTIFIED]


def test_a_watch_is_used_once_and_in_order() -> None:
    trace = specaudit.watch(random_model("llama"))
    with pytest.raises(UsageError, match="nothing was watched yet"):
        trace.report(PROMPTS, PROMPTS)
    with trace:
        pass
    with pytest.raises(UsageError, match="used before"), trace:
        pass


@pytest.mark.parametrize("model", [None, "gpt2", torch.nn.Linear(2, 2), random_model("llama").model], ids=str)
def test_what_is_no_causal_language_model_is_refused(model: Any) -> None:
    with pytest.raises(UsageError, match="cannot be watched"):
        specaudit.watch(model)


def test_text_of_others_is_escaped() -> None:
    model = copy.copy(random_model("llama"))
    model.__class__ = type("Evil\x1b[31m\u202e", (type(model),), {})
    with specaudit.watch(model) as trace:
        outputs = decoded(plain_loop.decode, random_model("llama"))
    text = str(trace.report(PROMPTS, outputs))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_importing_the_package_imports_no_model_library() -> None:
    program = (
        "import sys, specaudit; assert callable(specaudit.watch);"
        "assert not {'torch', 'transformers', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
