"""Comma-separated options."""

from __future__ import annotations

from specaudit.core.errors import UsageError

LARGEST_SEED = 2**32 - 1
"""Largest seed that every generator takes."""

EXAMPLES = {"--decoder": "eqspec", "--batch-size": "1,4", "--draft-tokens": "4", "--eos-ids": "0,2", "--seed": "0,1"}
"""What the way out of an empty option shows."""


def names(text: str, *, option: str) -> tuple[str, ...]:
    """Return the names in a comma-separated list; raise UsageError for an empty list or a name given twice."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise UsageError(
            "nothing is named",
            where=option,
            way_out=f"give at least one, as in {option} {EXAMPLES.get(option, 'NAME')}.",
        )
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"'{twice}' is named twice", where=option, way_out="name each once.")
    return found


def positive_integers(text: str, *, option: str) -> tuple[int, ...]:
    """Return the numbers in a comma-separated list; raise UsageError for anything that is not a positive integer."""
    return _each_once(tuple(_positive_integer(part, option) for part in names(text, option=option)), option)


def seeds(text: str, *, option: str) -> tuple[int, ...]:
    """Return the numbers in a comma-separated list; raise UsageError for anything that is not 0 or more."""
    found = names(text, option=option)
    bad = next((part for part in found if not part.isdecimal() or int(part) > LARGEST_SEED), None)
    if bad is not None:
        raise UsageError(
            f"'{bad}' is not a seed", where=option, way_out=f"give whole numbers up to {LARGEST_SEED}: {option} 0,1,2."
        )
    return _each_once(tuple(int(part) for part in found), option)


def token_ids(text: str, *, option: str) -> tuple[int, ...]:
    """Return the ids in a comma-separated list; raise UsageError for anything that is not a token id."""
    found = names(text, option=option)
    bad = next((part for part in found if not part.isdecimal()), None)
    if bad is not None:
        raise UsageError(f"'{bad}' is not a token id", where=option, way_out=f"give whole numbers: {option} 0,2.")
    return tuple(int(part) for part in found)


def _each_once(numbers: tuple[int, ...], option: str) -> tuple[int, ...]:
    """Return the numbers; raise UsageError where two spellings (`4,04`) are one number."""
    twice = next((number for number in numbers if numbers.count(number) > 1), None)
    if twice is not None:
        raise UsageError(f"'{twice}' is named twice", where=option, way_out="name each once.")
    return numbers


def _positive_integer(text: str, option: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"'{text}' is not a whole number of at least 1", where=option, way_out=f"as in {option} 1,4.")
    return int(text)
