"""A decoder call that hangs is given up, whatever it catches, and the timer does not outlive it."""

from __future__ import annotations

import json
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from specaudit.call_timeout import CallTimedOutError, call_timeout, check_timeout_is_possible
from specaudit.core.errors import UsageError
from tests.cli.command import specaudit

if TYPE_CHECKING:
    from pathlib import Path


def spin(seconds: float = 20) -> None:
    """Keep Python busy."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def swallow() -> None:
    """Hang, and hang on when interrupted."""
    for _ in range(3):
        try:
            spin(0.3)
        except BaseException:
            continue


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    before = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("hang", [spin, swallow, lambda: time.sleep(20)])
def test_a_call_that_hangs_is_given_up(hang) -> None:
    started = time.monotonic()
    with pytest.raises(CallTimedOutError, match=r"timed out after 0\.1 s"), call_timeout(0.1):
        hang()
    assert time.monotonic() - started < 10


def careful() -> None:
    """Hang, and treat every exception as the end of the world."""
    try:
        spin()
    except Exception as error:
        raise AssertionError from error


def test_a_handler_of_exceptions_does_not_catch_it() -> None:
    with pytest.raises(CallTimedOutError), call_timeout(0.05):
        careful()


@pytest.mark.parametrize("seconds", [None, 5.0])
def test_a_call_in_time_is_left_alone(seconds: float | None) -> None:
    with call_timeout(seconds):
        result = 1
    assert result == 1
    with pytest.raises(KeyError), call_timeout(seconds):
        raise KeyError


def test_refused_where_there_is_no_timer() -> None:
    caught: list[UsageError] = []

    def check() -> None:
        check_timeout_is_possible(None)
        try:
            check_timeout_is_possible(1.0)
        except UsageError as error:
            caught.append(error)

    thread = threading.Thread(target=check)
    thread.start()
    thread.join()
    assert [error.where for error in caught] == ["--case-timeout"]


HANGS_ONCE = """
import time
from specaudit.decoders import eqspec

def decode(target, draft, tokenizer, prompts, *, max_new_tokens, draft_tokens, eos_token_ids, pad_token_id):
    outputs = eqspec.decode(target, draft, tokenizer, prompts, max_new_tokens=max_new_tokens, draft_tokens=draft_tokens,
                            eos_token_ids=eos_token_ids, pad_token_id=pad_token_id)
    while len(prompts[0]) % 2 == 0:
        try:
            time.sleep(0.01)
        except Exception:
            pass
    return outputs
"""


def test_its_cases_are_unmeasured_and_the_run_goes_on(in_folder: Path) -> None:
    (in_folder / "theirs.py").write_text(HANGS_ONCE)
    result = specaudit(
        "run", "--decoder", "theirs.py:decode", "--batch-size", "2", "--limit", "8", "--max-new-tokens", "6",
        "--case-timeout", "2", "--out", "run",
    )  # fmt: skip
    assert result.exit_code == 3
    cases = [json.loads(line) for line in (in_folder / "run" / "samples.jsonl").read_text().splitlines()]
    calls = {(case["unit"], case["call"]): case for case in reversed(cases)}  # the first case of each call
    for case in cases:
        hangs = len(calls[case["unit"], case["call"]]["prompt_ids"]) % 2 == 0
        assert case["verdict"] == ("unmeasured" if hangs else "identical")
        assert case["error"] == ("timed out after 2 s; --case-timeout sets the limit" if hangs else None)
    assert {case["verdict"] for case in cases} == {"unmeasured", "identical"}
    assert "timed out after 2 s" in result.stdout
