"""Planted faults: how they are recorded, and what is said of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import faults
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
    ("old", "new", "passes", "outcome"),
    [
        ("A = 1\n", "A = 2\n", True, KILLED),
        ("B = 1\n", "B = 2\n", True, SURVIVES),
        ("C = 1\n", "C = 2\n", True, UNFIT),
        ("A = 1\n", "A = 2\n", False, NO_TEST),
    ],
)
def test_a_fault_is_killed_by_a_test_that_fails_with_it_only(
    old: str, new: str, passes: bool, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it is taken out again."""
    path = tmp_path / "a.py"
    path.write_text("A = 1\nB = 1\n")
    monkeypatch.setattr(faults, "_run", lambda *_: 0 if passes and "A = 1" in path.read_text() else 1)
    assert judged(Fault(1, "a.py", "test_a.py::test_one", old, new), tmp_path) == outcome
    assert path.read_text() == "A = 1\nB = 1\n"


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_test_is_run_in_the_copy(tmp_path: Path) -> None:
    """By pytest, with the fault in it; the same holds for processes that the test starts elsewhere."""
    (tmp_path / "a.py").write_text("A = 1\n")
    (tmp_path / "test_a.py").write_text(
        "import subprocess, sys\n\ndef test_one():\n"
        "    subprocess.run([sys.executable, '-c', 'import a; assert a.A == 1'], cwd='/', check=True)\n"
    )
    assert judged(Fault(1, "a.py", "test_a.py::test_one", "A = 1\n", "A = 2\n"), tmp_path) == KILLED


def test_each_recorded_fault_fits_the_tree() -> None:
    """Its lines are there once, and its test is defined."""
    recorded = read(RECORDS.read_text(encoding="utf-8"))
    unfit = [one for one in recorded if (ROOT / one.file).read_text(encoding="utf-8").count(one.old) != 1]
    assert not unfit
    for one in recorded:
        path, _, name = one.test.partition("::")
        assert f"def {name.partition('[')[0].rpartition('::')[2]}(" in (ROOT / path).read_text(encoding="utf-8"), (
            one.test
        )
