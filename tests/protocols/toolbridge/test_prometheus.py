"""The Prometheus metrics of the tool bridge."""

from __future__ import annotations

import re

import pytest

from invoker.protocols.toolbridge.prometheus import COUNTERS, GAUGES, families, tool_numbers
from invoker.telemetry.board import Board, Numbers, Row
from invoker.telemetry.metrics import Metrics
from tests.gendocs import table
from tests.opsdoc import metrics_page

BUCKETS = (("0.001", 1), ("0.005", 0), ("0.1", 2), ("+Inf", 1))


def rendered(numbers: Numbers) -> list[str]:
    """The lines of the page."""
    return Metrics(lambda: numbers, lambda: [families]).render()[1].decode().splitlines()


def served(*tools: str) -> Numbers:
    """What a process has counted that serves the bridge."""
    outcomes = {(tool, outcome): 4 for tool in tools for outcome in ("ok", "TimeoutError")}
    numbers = tool_numbers(tools, outcomes, dict.fromkeys(tools, (BUCKETS, 2.5)))
    return Numbers(dict.fromkeys(COUNTERS, 3.0) | numbers, dict.fromkeys(GAUGES, 1.0))


def test_T155_calls_durations_and_sums_are_families() -> None:
    """A tool may have blanks in its id; buckets are cumulative."""
    lines = rendered(served("my file.py:fn"))
    tool = 'tool="my file.py:fn"'
    assert f'invoker_tool_calls_total{{outcome="TimeoutError",{tool}}} 4.0' in lines
    assert f'invoker_tool_duration_seconds_bucket{{le="0.001",{tool}}} 1.0' in lines
    assert f'invoker_tool_duration_seconds_bucket{{le="0.1",{tool}}} 3.0' in lines
    assert f'invoker_tool_duration_seconds_bucket{{le="+Inf",{tool}}} 4.0' in lines
    assert f"invoker_tool_duration_seconds_count{{{tool}}} 4.0" in lines
    assert f"invoker_tool_duration_seconds_sum{{{tool}}} 2.5" in lines
    assert "invoker_tool_rate_limited_total 3.0" in lines
    assert "invoker_tool_sessions 1.0" in lines
    assert "invoker_audit_errors_total 3.0" in lines


def test_the_reference_has_every_metric() -> None:
    """And none that is not given."""
    given = {re.split("[ {]", one)[0] for one in rendered(served("m:f")) if not one.startswith("#")}
    page = "\n".join(metrics_page("", table)).partition("Where the tool bridge is served")[2]
    page = page.partition("Where federated rounds are served")[0]
    told = {name.partition("{")[0] for name in re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)}
    parts = {"invoker_tool_duration_seconds_count", "invoker_tool_duration_seconds_sum"}
    assert {one for one in given if "tool" in one or "audit" in one} - parts == told


def test_a_process_that_serves_no_bridge_tells_nothing_of_it() -> None:
    """As before."""
    assert not [one for one in rendered(Numbers()) if "tool" in one]


def test_the_numbers_of_workers_add_up() -> None:
    """Bucket by bucket."""
    lines = rendered(served("m:f").plus(served("m:f", "m:g")))
    assert 'invoker_tool_duration_seconds_bucket{le="0.1",tool="m:f"} 6.0' in lines
    assert 'invoker_tool_duration_seconds_count{tool="m:g"} 4.0' in lines
    assert "invoker_tool_sessions_created_total 6.0" in lines


def test_T155_thousands_of_tools_are_told_one_by_one_by_any_number_of_workers() -> None:
    """By the board as well; nothing is lumped."""
    numbers = served(*(f"a.module.of.some.length:funkti\u00f6n_{n}" for n in range(5000)))
    read = through_the_board(numbers.plus(numbers))
    calls = {name: number for name, number in read.counters.items() if name.startswith("invoker_tool_calls ")}
    assert len(calls) == 10_000
    assert set(calls.values()) == {8}
    assert not [name for name in calls if " other " in name]


def test_any_number_of_tools_fits_on_the_board(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond tens of thousands the others are one; no call is lost, and two workers name the same."""
    monkeypatch.setattr("invoker.protocols.toolbridge.prometheus._MOST_BYTES", 96 * 1024)
    numbers = served(*(f"a.module.of.some.length:funkti\u00f6n_{n}" for n in range(1000)))
    read = through_the_board(numbers.plus(numbers))
    calls = {name: number for name, number in read.counters.items() if name.startswith("invoker_tool_calls ")}
    assert sum(calls.values()) == 16_000
    assert 20 < len(calls) < 200
    assert "invoker_tool_calls other ok" in calls


def through_the_board(numbers: Numbers) -> Numbers:
    board = Board.make()
    board.write(1, Row(1, numbers=numbers))
    read = board.read()[1].numbers
    board.close()
    return read
