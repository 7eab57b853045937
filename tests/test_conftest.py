"""What `tests/conftest.py` gives to all tests: parts of the suite."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import is_in_part

ROOT = Path(__file__).resolve().parent.parent


def test_each_file_is_in_exactly_one_part() -> None:
    """Wherever it is run; a file goes with all its tests, and halves are about equal."""
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    sizes = Counter[int]()
    for file in files:
        (number,) = [number for number in (1, 2) if is_in_part(f"{file}::test_one", number, 2)]
        assert is_in_part(f"{file}::test_two[case::1]", number, 2)
        sizes[number] += 1
    assert min(sizes.values()) > 0.4 * len(files)
    assert is_in_part("tests/core/test_streams.py::test_a", 1, 2) != is_in_part(
        "tests/core/test_budget.py::test_a", 1, 2
    )


def test_a_part_is_what_runs(pytestconfig: pytest.Config) -> None:
    """The tests of other parts are left out."""
    part = pytestconfig.getoption("part")
    assert part is None or is_in_part("tests/test_conftest.py", *part)
