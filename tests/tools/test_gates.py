"""The gates: what is counted, and what they say of figures that got worse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import gates
from tools.compare import worse
from tools.covered import shares
from tools.size import size

FIGURES = {
    "calls": {"sync": {"riff sync": {"calls": 100, "files": 30}}},
    "imports": {"help": {"loads": ["grpc"], "ms": 100}},
}


def test_more_calls_are_worse_and_fewer_are_not() -> None:
    """Beyond what a busy machine adds."""
    more = {"calls": {"sync": {"riff sync": {"calls": 120, "files": 20}}}}
    assert worse(FIGURES, more) == ["calls.sync.riff sync.calls: 120 where 100 is recorded"]
    assert worse(more, FIGURES) == ["calls.sync.riff sync.files: 30 where 20 is recorded"]


def test_a_library_that_is_loaded_newly_is_worse() -> None:
    """One that is no longer loaded is not."""
    assert worse(FIGURES, {"imports": {"help": {"loads": ["grpc", "numpy"], "ms": 100}}}) == [
        "imports.help.loads: numpy was not loaded before"
    ]
    assert worse(FIGURES, {"imports": {"help": {"loads": []}}}) == []


def test_less_coverage_is_worse_and_lines_are_only_told() -> None:
    """More of it is not."""
    before = {"coverage": {"core": 95.0}, "size": {"rooms": {"invoker/core": {"lines": 10}}}}
    assert worse(before, {"coverage": {"core": 94.0}, "size": {"rooms": {"invoker/core": {"lines": 99}}}}) == [
        "coverage.core: 94.0 where 95.0 is recorded"
    ]
    assert worse(before, {"coverage": {"core": 96.0}}) == []


@pytest.mark.parametrize(("value", "code"), [(1, 0), (2, 1)])
def test_the_exit_code_says_whether_something_got_worse(
    value: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is recorded is compared; nothing is written."""
    record = tmp_path / "gates.json"
    monkeypatch.setattr(gates, "PARTS", {"size": lambda _: {"functions too long": 1}})
    assert gates.main(["--write"], record) == 0
    text = record.read_text()
    monkeypatch.setattr(gates, "PARTS", {"size": lambda _: {"functions too long": value}})
    assert gates.main([], record) == code
    assert record.read_text() == text


def test_figures_of_another_python_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so."""
    record = tmp_path / "gates.json"
    record.write_text(json.dumps({"python": "3.1"}))
    monkeypatch.setattr(gates, "PARTS", {"size": lambda _: {}})
    assert gates.main([], record) == 2


def test_rooms_and_long_functions_are_measured(tmp_path: Path) -> None:
    """Lines, statements and files of a room; a function of 41 lines is too long."""
    room = tmp_path / "invoker" / "core"
    room.mkdir(parents=True)
    (room / "a.py").write_text("def f() -> None:\n" + "    pass\n" * 40)
    (room / "b.py").write_text("def g() -> None:\n" + "    pass\n" * 39)
    found = size(tmp_path)
    assert found["rooms"]["invoker/core"] == {"files": 2, "lines": 81, "statements": 81}
    assert found["such functions"] == ["invoker/core/a.py:f"]


def test_coverage_is_of_rooms_and_of_protocols() -> None:
    """Statements and branches count together; a room without any is left out."""
    files = {
        "invoker/core/streams.py": _covered(90, 100, 5, 10),
        "invoker/protocols/riff/session.py": _covered(10, 10, 0, 0),
        "invoker/protocols/web/service/http.py": _covered(5, 10, 0, 0),
        "invoker/protocols/__init__.py": _covered(0, 0, 0, 0),
        "invoker/execution/__init__.py": _covered(0, 0, 0, 0),
    }
    assert shares(files) == {"core": 86.4, "protocols": 75.0, "protocols/riff": 100.0, "protocols/web": 50.0}


def _covered(lines: int, of_lines: int, branches: int, of_branches: int) -> dict[str, dict[str, int]]:
    names = ("covered_lines", "num_statements", "covered_branches", "num_branches")
    return {"summary": dict(zip(names, (lines, of_lines, branches, of_branches), strict=True))}
