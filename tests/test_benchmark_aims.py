"""The table of aims divides the right figures, and is not kind to them."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import EXTRAS
from benchmarks.aims import AIMS, Aim, aims
from benchmarks.measure import Clock
from benchmarks.rows import PEER_ROWS, ROWS
from benchmarks.servers import all_series

RATE = Aim("t", ("calls", "json"), "gen", "bare", 2, 3)
COST = Aim("t", ("aio1",), "gen", "bare", 1, 0.7, "p50")


@pytest.mark.parametrize(
    ("values", "mark"), [([3, 5], "aim reached"), ([3, 2.5], "reached"), ([1.99, 5], "**short of it**")]
)
def test_a_rate_must_reach_its_bound_in_every_row(values: list[float], mark: str) -> None:
    """The worst row decides."""
    assert RATE.mark(values) == mark


@pytest.mark.parametrize(("value", "mark"), [(0.7, "aim reached"), (0.99, "reached"), (1.01, "**short of it**")])
def test_a_cost_must_stay_below_its_bound(value: float, mark: str) -> None:
    """Less is better."""
    assert COST.mark([value]) == mark


def test_the_table_divides_medians() -> None:
    """A row that one of the two has not served is no part of it."""
    found = {
        ("calls", "gen"): {"rate": [20.0, 90.0, 30.0]},
        ("calls", "bare"): {"rate": [10.0, 10.0, 1.0]},
        ("json", "gen"): {"rate": [20.0]},
    }
    assert RATE.measured(found) == [3.0]
    assert COST.measured(found) == []
    text = aims(found, is_whole=False)
    assert "| gRPC calls/s, 64 in flight, h2load: gen ÷ bare | at least 2.5 | 3.5 | 3.00 | reached |" in text
    assert text.count("\n") == 4
    assert aims(found, is_whole=True).count("not measured") == len(AIMS) - 1
    assert aims({}, is_whole=False) == ""


def test_every_aim_has_rows_and_columns_that_exist() -> None:
    """A name that is misspelt would never be measured."""
    columns = {one.name: one for one in all_series("127.0.0.1:1", "/older")}
    rows = {row.name: row for row in (*ROWS, *PEER_ROWS)}
    for aim in AIMS:
        for name in aim.rows:
            if name in EXTRAS:
                assert (aim.column, aim.against) == ("batched", "costly")
                continue
            row = rows[name]
            assert aim.figure in row.figures
            assert columns[aim.column].serves(row)
            assert columns[aim.against].serves(row)


def test_the_clock_adds_up_what_a_part_takes() -> None:
    """Parts that come again count once."""
    clock = Clock()
    clock.done("a")
    first = clock.took["a"]
    clock.done("b")
    clock.done("a")
    assert list(clock.took) == ["a", "b"]
    assert clock.took["a"] >= first >= 0
