"""The noise floor: how far from the argmax a token may lie before rounding no longer explains it.

Two sound decoders that compute in other shapes round differently, and where the two largest logits are nearly equal they
choose differently. How far apart "nearly" is depends on weights, types and kernels, so it is not assumed: the regrets
of control arms, decoders without speculation, measure it. Three zones follow:

- up to the largest regret of the controls: a tie;
- up to four times that: a tie only if the token's context was certified in full;
- above: never.

The factor allows for what a sample's maximum is worth. An equal sample of the same decoder exceeds it half the time, so
the maximum alone would accuse every second sound decoder. Regrets of ties are spread nearly evenly above 0: a sound
sample with m of them exceeds `c` times the maximum of k control ones with probability m / (m + k) / c ** k, for equal
samples and c = 4: 13 % with one, 3 % with two, below 1 % with three. `chance_of_false_alarm` gives it. With none it is
one half: a floor without a single departure is no measurement of noise, and only the rounding of the type bounds it.

What the sample cannot show is how often more happens: of n tokens none lay above the maximum, which leaves a share of up
to 3 / n plausible at 95 % confidence (the rule of three; `share_above` has the exact bound). Faults smaller than the
floor are excused as well, hence it is printed.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from specaudit.core.scores import TIE_FACTOR, NoiseFloor, Zone
from specaudit.core.shares import upper_bound_of_zero

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROUNDINGS, ROUNDINGS_OF_HALF = 8, 3
"""Roundings of the largest logit that a difference of two logits is granted where nothing was measured.

Seen between forwards of one model in different types and shapes: up to 5.6 in float32, up to 2.7 in bfloat16 (the bundled
llama, SmolLM2-135M; some hundred tokens each).
"""

HALF = 1e-4
"""A machine epsilon above this is that of a type of half precision."""


def measure_floor(controls: Iterable[Sequence[float]], *, resolution: float = 0.0) -> NoiseFloor:
    """Return the floor that the regrets of control outputs give, one sequence of regrets in logits for each output.

    Raises ValueError for a regret that is negative, infinite or not a number, and where there is no token at all:
    nothing was measured then, which is not a floor of 0.
    """
    outputs = [tuple(regrets) for regrets in controls if len(regrets)]
    regrets = [regret for output in outputs for regret in output]
    if not regrets:
        raise ValueError("no control has a token: the noise floor is unknown, not 0")
    bad = next((regret for regret in (*regrets, resolution) if not isfinite(regret) or regret < 0), None)
    if bad is not None:
        raise ValueError(f"{bad} is no regret of a decoder that nothing is wrong with")
    return NoiseFloor(
        maximum=max(regrets),
        resolution=resolution,
        outputs=len(outputs),
        tokens=len(regrets),
        departures=sum(regret > 0 for regret in regrets),
        departing=sum(any(regret > 0 for regret in output) for output in outputs),
    )


def zone(regret: float, floor: NoiseFloor) -> Zone:
    """Return what a regret, in logits, may be put down to; both bounds belong to the milder zone.

    Raises ValueError for a regret that is negative or not a number.
    """
    if not regret >= 0:
        raise ValueError(f"{regret} is not a regret")
    if regret <= floor.excused:
        return Zone.TIE
    return Zone.TIE_IF_CERTIFIED if regret <= floor.accused else Zone.NEVER


def rounding_of_logits(largest_logits: Iterable[float], *, epsilon: float) -> float:
    """Return the regret, in logits, that the rounding of a type with this machine `epsilon` explains by itself.

    `ROUNDINGS` times, in half precision `ROUNDINGS_OF_HALF` times, the spacing of numbers near the largest logit by
    magnitude; 0 where there are none. It keeps a few controls without a departure from making 0 the floor, and is no
    substitute for them: kernels of another engine, or weights in another type, round more.
    """
    roundings = ROUNDINGS_OF_HALF if epsilon > HALF else ROUNDINGS
    return roundings * epsilon * max(map(abs, largest_logits), default=0.0)


def chance_of_false_alarm(floor: NoiseFloor, *, departures: int | None = None) -> float:
    """Return how probably a sound sample goes beyond `TIE_FACTOR` times the controls' maximum.

    `departures` is the number of that sample's tokens which are not the argmax, by default as many as the controls have.
    Regrets of ties are taken as evenly spread above 0 and as independent.
    """
    there = max(floor.departures, 1) if departures is None else departures
    if there == 0:
        return 0.0
    return float(there / (there + floor.departures) / TIE_FACTOR**floor.departures) if floor.departures else 0.5


def share_above(floor: NoiseFloor) -> float:
    """Return the largest share of tokens above the maximum that the controls leave plausible, at 95 % confidence."""
    return upper_bound_of_zero(floor.tokens)
