"""The noise floor: its zones, what it refuses, and the probabilities that its documentation promises."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specaudit.core.scores import TIE_FACTOR, Zone
from specaudit.oracle.floor import chance_of_false_alarm, measure_floor, rounding_of_logits, share_above, zone

REGRETS = st.floats(min_value=0, max_value=1e6)


def test_the_three_zones_and_their_bounds() -> None:
    floor = measure_floor([[0.0, 0.02], [], [0.0, 0.05, 0.0]])
    assert (floor.maximum, floor.outputs, floor.tokens, floor.departures) == (0.05, 2, 5, 2)
    zones = {0.0: Zone.TIE, 0.05: Zone.TIE, 0.0501: Zone.TIE_IF_CERTIFIED, 0.2: Zone.TIE_IF_CERTIFIED}
    zones |= {0.2001: Zone.NEVER, math.inf: Zone.NEVER}
    assert {regret: zone(regret, floor) for regret in zones} == zones


@given(controls=st.lists(st.lists(REGRETS, min_size=1), min_size=1), regrets=st.lists(REGRETS, min_size=2))
def test_more_regret_is_never_milder_and_controls_are_ties(controls: list[list[float]], regrets: list[float]) -> None:
    floor = measure_floor(controls)
    severity = [list(Zone).index(zone(regret, floor)) for regret in sorted(regrets)]
    assert severity == sorted(severity)
    assert {zone(regret, floor) for control in controls for regret in control} == {Zone.TIE}
    assert measure_floor([*controls, regrets]).maximum >= floor.maximum


def test_the_resolution_holds_where_controls_show_less() -> None:
    floor = measure_floor([[0.0] * 100], resolution=1e-5)
    assert (floor.maximum, floor.excused, floor.accused) == (0.0, 1e-5, 4e-5)
    assert [zone(regret, floor) for regret in (1e-6, 2e-5, 1e-3)] == list(Zone)
    assert measure_floor([[0.3]], resolution=1e-5).excused == 0.3


@pytest.mark.parametrize("controls", [[], [[]], [[], []]])
def test_nothing_measured_is_no_floor(controls: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="unknown, not 0"):
        measure_floor(controls)


@pytest.mark.parametrize("bad", [-1e-9, math.inf, math.nan])
def test_what_is_no_regret_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="no regret"):
        measure_floor([[0.1, bad]])
    with pytest.raises(ValueError, match="no regret"):
        measure_floor([[0.1]], resolution=bad)
    if bad != math.inf:
        with pytest.raises(ValueError, match="not a regret"):
            zone(bad, measure_floor([[0.1]]))


def test_rounding_scales_with_type_and_logits() -> None:
    assert rounding_of_logits([3.0, -16.0], epsilon=2**-23) == 8 * 16 * 2**-23
    assert rounding_of_logits([], epsilon=2**-23) == 0


@pytest.mark.parametrize(("control", "candidate"), [(1, 1), (2, 2), (1, 5), (3, 3)])
def test_false_alarms_are_as_frequent_as_promised(control: int, candidate: int) -> None:
    generator = np.random.default_rng(5)
    trials = 200_000
    maxima = generator.random((trials, control)).max(1)
    alarms = (generator.random((trials, candidate)).max(1) > TIE_FACTOR * maxima).mean()
    floor = measure_floor([[0.1] * control + [0.0] * 10])
    promised = chance_of_false_alarm(floor, departures=candidate)
    assert abs(alarms - promised) < 4 * math.sqrt(promised / trials)
    if control == candidate:
        assert promised == chance_of_false_alarm(floor)


def test_without_a_departure_nothing_is_known_of_the_noise() -> None:
    floor = measure_floor([[0.0] * 50])
    assert chance_of_false_alarm(floor) == 0.5
    assert chance_of_false_alarm(floor, departures=0) == 0.0


def test_the_rule_of_three() -> None:
    assert share_above(measure_floor([[0.0] * 300])) == pytest.approx(3 / 300, rel=0.01)


def test_the_floor_needs_no_model_library() -> None:
    program = "import sys, specaudit.oracle.floor\nassert not {'torch', 'numpy', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
