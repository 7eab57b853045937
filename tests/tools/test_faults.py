"""Planted faults: how they are recorded, and what is said of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.faults import KILLED, NO_TEST, RECORDS, SURVIVES, UNFIT, Fault, judged, read
from tools.server import ROOT

RECORD = """# A remark.
file: invoker/a.py
test: tests/test_a.py::test_a
- if count >= most:
+ if count > most:
"""


def test_a_record_has_a_file_a_test_and_lines() -> None:
    """Those that are there, and those that come instead."""
    fault = Fault(1, "invoker/a.py", "tests/test_a.py::test_a", "if count >= most:\n", "if count > most:\n")
    assert read(RECORD) == [fault]


@pytest.mark.parametrize("line", ["file: invoker/a.py", "test: tests/test_a.py::test_a", "- if count >= most:"])
def test_a_record_that_lacks_something_is_refused(line: str) -> None:
    """Each of the three is needed."""
    with pytest.raises(ValueError, match="record 1"):
        read(RECORD.replace(f"{line}\n", ""))


@pytest.mark.parametrize(
    ("old", "new", "test", "outcome"),
    [
        ("A = 1\n", "A = 2\n", "test_one", KILLED),
        ("B = 1\n", "B = 2\n", "test_one", SURVIVES),
        ("C = 1\n", "C = 2\n", "test_one", UNFIT),
        ("A = 1\n", "A = 2\n", "test_none", NO_TEST),
    ],
)
@pytest.mark.timeout(60)
def test_a_fault_is_killed_by_a_test_that_fails_with_it_only(
    old: str, new: str, test: str, outcome: str, tmp_path: Path
) -> None:
    """And it is taken out again."""
    (tmp_path / "a.py").write_text("A = 1\nB = 1\n")
    (tmp_path / "test_a.py").write_text(
        "from pathlib import Path\n\ndef test_one():\n    assert 'A = 1' in Path('a.py').read_text()\n"
    )
    assert judged(Fault(1, "a.py", f"test_a.py::{test}", old, new), tmp_path) == outcome
    assert (tmp_path / "a.py").read_text() == "A = 1\nB = 1\n"


def test_each_recorded_fault_fits_the_tree() -> None:
    """Its lines are there once, and its test is defined."""
    faults = read(RECORDS.read_text(encoding="utf-8"))
    unfit = [one for one in faults if (ROOT / one.file).read_text(encoding="utf-8").count(one.old) != 1]
    assert not unfit
    for one in faults:
        path, _, name = one.test.partition("::")
        assert f"def {name.partition('[')[0].rpartition('::')[2]}(" in (ROOT / path).read_text(encoding="utf-8"), (
            one.test
        )
