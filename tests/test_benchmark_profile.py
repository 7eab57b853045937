"""The profile of a call: what a server counts of itself, and what Linux says of its threads."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import pytest

from benchmarks.counted import Counter
from benchmarks.process import group_processor_s, processor_s, processor_split_s, switches
from benchmarks.profile import CASES, _profiled, _top
from benchmarks.rows import row_named
from benchmarks.servers import STYLES


def _work(count: int) -> None:
    for _ in range(count):
        _step()


def _step() -> None:
    len("abc")


def test_calls_of_a_thread_are_counted(tmp_path: Path) -> None:
    """Those of Python and those of C apart; two files can be subtracted."""
    counter = Counter(tmp_path)

    def body() -> None:
        counter.begin()
        _work(10)
        counter.write()
        _work(5)
        counter.write()
        counter.end()

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    first, second = (json.loads((tmp_path / f"{number}.json").read_text(encoding="utf-8")) for number in (0, 1))
    step = next(name for name in first if name.endswith(" _step"))
    assert (first[step][:2], second[step][:2]) == ([10, 0], [15, 0])
    assert second["<built-in method builtins.len>"][:2] == [0, 15]  # and not those of what writes the file


def test_linux_says_what_a_process_used() -> None:
    """Time of the group has that of this process, and waiting is a switch of its own accord."""
    user, system = processor_split_s(os.getpid())
    assert processor_s(os.getpid()) >= user + system >= 0
    assert group_processor_s(os.getpgid(0)) >= 0
    gave, _ = switches(os.getpid())
    threading.Event().wait(0.01)
    assert switches(os.getpid())[0] > gave


def test_cases_are_rows_and_styles() -> None:
    """Each can be measured."""
    for row, style, calls in CASES.values():
        assert row_named(row).streams < calls
        assert style in STYLES


def test_the_dearest_functions_come_first() -> None:
    """Sorted by their own time."""
    text = _top("x", {"cheap": [1, 0, 1e-6], "dear": [0, 2, 5e-6], "free": [1, 0, 0]}, 2)
    assert text.splitlines()[-2:] == ["| dear | 2.00 | 5.0 |", "| cheap | 1.00 | 1.0 |"]


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_server_is_profiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """All figures of one case, with some function of the transport among the calls."""
    monkeypatch.setitem(CASES, "grpc-async", ("aio8", "areply", 80))

    cells, top = _profiled("grpc-async", sys.executable, 5)
    assert len(cells) == 7
    assert float(cells[5]) > 10
    assert "under cProfile" in top
