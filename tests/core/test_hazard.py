from dataclasses import replace

from specaudit.core.hazard import hazard
from specaudit.core.shares import share
from specaudit.core.vocabulary import Compared
from tests.core.cases import made_case

REFERENCE = (5, 6, 7, 8)


def made(output: tuple[int, ...] | None):
    return made_case(reference=REFERENCE, output=output)


def test_tokens_after_a_divergence_are_not_at_risk() -> None:
    assert hazard([made(REFERENCE)]) == share(0, 4)
    assert hazard([made((5, 9, 7, 8))]) == share(1, 2)
    assert hazard([made((9, 9, 9, 9))]) == share(1, 1)
    assert hazard([made((5, 6))]) == share(1, 3)  # the third token is the one that does not come
    assert hazard([made((*REFERENCE, 9, 9))]) == share(1, 5)
    assert hazard([made(REFERENCE), made((5, 9, 7, 8)), made(REFERENCE)]) == share(1, 10)


def test_what_has_no_tokens_is_not_counted() -> None:
    assert hazard([]) is None
    assert hazard([made(None)]) is None
    assert hazard([replace(made(REFERENCE), output_ids=None, compared=Compared.TEXT)]) is None
    assert hazard([made_case(reference=(), output=())]) is None
