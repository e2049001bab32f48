import pytest
from scipy.stats import binomtest

from specaudit.core.shares import share, upper_bound_of_zero


@pytest.mark.parametrize(("count", "total"), [(0, 1), (1, 1), (31, 32), (0, 48), (7, 9), (480, 480), (1, 1000)])
def test_interval_is_wilsons(count: int, total: int) -> None:
    expected = binomtest(count, total).proportion_ci(confidence_level=0.95, method="wilson")
    found = share(count, total)
    assert found.low == pytest.approx(expected.low, abs=1e-12)
    assert found.high == pytest.approx(expected.high, abs=1e-12)
    assert found.rate == count / total


@pytest.mark.parametrize("total", [1, 8, 48, 480])
def test_bound_of_no_failures_is_clopper_pearsons(total: int) -> None:
    expected = binomtest(0, total, alternative="less").proportion_ci(confidence_level=0.95, method="exact")
    assert upper_bound_of_zero(total) == pytest.approx(expected.high, abs=1e-12)


def test_shares_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="no cases"):
        share(0, 0)
    with pytest.raises(ValueError, match="bound nothing"):
        upper_bound_of_zero(0)
    with pytest.raises(ValueError, match="not a share"):
        share(3, 2)
