"""What people and machines are shown."""

from __future__ import annotations

import io
import json
from collections import Counter
from typing import Any

import pytest

from invoker.protocols.federated.verbs.simulation import show
from invoker.protocols.federated.verbs.simulation.results import Result, Times, Totals


def result(**changes: Any) -> Result:
    given: dict[str, Any] = {
        "population": "p", "task": "t", "round": 3, "outcome": "failed", "why": "too_few", "accepted": 9,
        "reported": 4, "failed": 1, "invalid": 0, "late": 0, "dropped": 4, "cut": 0, "summed": 0,
        "left": {"before report": 3, "R1": 1}, "rejected": {"full": 2}, "checkin_to_accept_s": Times(1, 2, 3, 4, 5),
        "accept_to_report_s": Times(), "bytes_up": 12345, "bytes_down": 6, "seconds": 7.5, "ended_at": 20.0,
    }  # fmt: skip
    return Result(**(given | changes))


def test_a_round_says_what_became_of_its_devices() -> None:
    text = show.round_text(result())
    assert "p/t round 3: failed (too_few) after 7.5 s: 9 accepted, 4 reported" in text
    assert "4 dropped (1 R1, 3 before report), 1 failed" in text
    assert "min 1.000  p50 2.000  p90 3.000  p99 4.000  max 5.000 s" in text
    assert "accept to report    nothing to measure" in text
    assert "12,345 up, 6 down" in text
    assert "metric" not in text
    assert "metric              0.5" in show.round_text(result(metric=0.5))


def test_totals_count_rounds_that_were_committed() -> None:
    totals = Totals(30, Counter(lost=10, reported=20), 5, 6, 100.0)
    text = show.totals_text(totals, [result(), result(outcome="committed", why="")], 1.25)
    assert text.startswith("1 of 2 rounds committed in 100.0 simulated seconds, 1.2 real")
    assert "30: 10 lost, 20 reported" in text


def test_json_has_everything() -> None:
    told = json.loads(show.report_json({"seed": 1}, Totals(1), [result()], "done"))
    assert told["given"] == {"seed": 1}
    assert told["rounds"][0]["left"] == {"before report": 3, "R1": 1}
    assert told["ended"] == "done"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for out, is_drawn in ((io.StringIO(), False), (Terminal(), True)):
        bar = show.Bar(out, 4)
        bar.tick(2, Totals(1000))
        assert ("[############............] 2/4 rounds, 1,000 conversations" in out.getvalue()) == is_drawn
        length = len(out.getvalue())
        bar.tick(3, Totals(1001))  # too soon
        assert len(out.getvalue()) == length
        bar.clear()
        assert out.getvalue().endswith("\r") == is_drawn
