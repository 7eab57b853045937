"""The report: by requirement, as table, JSON and JUnit."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from invoker_conformance import SCENARIOS
from invoker_conformance.catalogue import ALL, BY_PROTOCOL
from invoker_conformance.report import Report
from invoker_conformance.runner import Outcome, Verdict
from invoker_conformance.scenario import Failure

FAILURE = Failure("2 frames, then OK", "UNKNOWN 'Invoker: Protocol Violation'", "S, S \x00")


def outcome(name: str, verdict: Verdict, reason: str = "") -> Outcome:
    """An outcome of a scenario."""
    return Outcome(SCENARIOS[name], verdict, 0.25, FAILURE if verdict is Verdict.FAIL else None, reason)


def verdicts(*outcomes: Outcome) -> dict[str, Verdict]:
    """What the report says of each requirement."""
    return {row.requirement.id: row.verdict for row in Report(outcomes, target="here").rows}


def test_every_requirement_has_a_row() -> None:
    """Also those that nobody outside can judge, with the reason."""
    rows = Report([], target="here").rows
    assert [row.requirement.id for row in rows] == [f"R-{number:03}" for number in range(1, 172)]
    assert {row.verdict for row in rows} == {Verdict.NOT_JUDGED}
    assert all(row.reason for row in rows)


def test_one_failure_fails_a_requirement() -> None:
    """Whatever its other scenarios say."""
    found = verdicts(outcome("second_start", Verdict.PASS), outcome("start_after_data", Verdict.FAIL))
    assert found["R-046"] is Verdict.FAIL


def test_a_pass_counts_beside_a_missing_function() -> None:
    """A requirement is judged by those scenarios that could run."""
    found = verdicts(
        outcome("second_start", Verdict.PASS), outcome("start_after_data", Verdict.NOT_PROVIDED, "function x")
    )
    assert found["R-046"] is Verdict.PASS


def test_a_missing_function_is_told() -> None:
    """The row says what the target does not provide."""
    report = Report([outcome("second_start", Verdict.NOT_PROVIDED, "function square")], target="here", is_whole=False)
    assert [(row.verdict, row.reason) for row in report.rows] == [(Verdict.NOT_PROVIDED, "function square")]
    assert report.has_failed  # nothing passed


def test_the_text_tells_a_failure_in_full() -> None:
    """Sent, met, expected, and the text of the requirement that it breaks."""
    text = Report([outcome("second_start", Verdict.FAIL)], target="here", is_whole=False).text()
    for part in (
        "R-046  MUST        fail",
        "[failed by second_start]",
        "FAIL second_start RT-07 R-046 [square]",
        "sent:     S, S",
        "met:      2 frames, then OK",
        "expected: UNKNOWN 'Invoker: Protocol Violation'",
        "breaks:   R-046 MUST A later start fails the RPC.",
        "FAILED: requirements 1 fail; scenarios 1 fail",
    ):
        assert part in text


def test_the_summary_of_a_run_that_passed() -> None:
    """One line with the counts."""
    report = Report([outcome("second_start", Verdict.PASS)], target="here", is_whole=False)
    assert report.summary() == "PASSED: requirements 1 pass; scenarios 1 pass"
    assert not report.has_failed


def test_json_holds_requirements_and_scenarios() -> None:
    """Machines read the same facts."""
    told = json.loads(Report([outcome("second_start", Verdict.FAIL)], target="here").json())
    assert told["passed"] is False
    assert len(told["requirements"]) == len(BY_PROTOCOL["riff"])
    (scenario,) = told["scenarios"]
    assert scenario["numbers"] == ["RT-07"]
    assert scenario["met"] == "2 frames, then OK"
    assert scenario["result"] == "fail"


def test_junit_has_a_case_a_scenario() -> None:
    """Failures and skips are told apart; control characters do not break the XML."""
    report = Report(
        [
            outcome("second_start", Verdict.FAIL),
            outcome("start_after_data", Verdict.NOT_PROVIDED, "function x"),
            outcome("square_json", Verdict.PASS),
        ],
        target="here",
    )
    suite = ET.fromstring(report.junit())
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert [case.get("classname") for case in suite] == ["riff.grammar", "riff.grammar", "riff.shapes"]
    assert [[child.tag for child in case] for case in suite] == [["failure"], ["skipped"], []]


def test_both_protocols_have_their_rows() -> None:
    """The title names them, and each scenario its own."""
    both = Report([outcome("single_text", Verdict.FAIL)], target="here", protocols=["riff", "evergreen"])
    assert len(both.rows) == 171 + 131
    assert both.title == "riff and evergreen conformance of here"
    assert "breaks:   E-001 MUST One StartSession RPC = one session" in both.text()
    assert 'classname="evergreen.session"' in both.junit()


def test_decisions_are_told_apart() -> None:
    """A scenario that fails in what the catalogue decided fails a strict run only, and is counted for itself."""
    outcomes = [outcome("second_start", Verdict.PASS), outcome("half_close_immediately", Verdict.FAIL)]
    lenient = Report(outcomes, target="here", is_whole=False)
    assert lenient.summary() == "PASSED: requirements 1 pass; decisions 1 fail; scenarios 1 pass, 1 fail"
    assert "they count with --strict only\nR-048  MUST (D)    fail" in lenient.text()
    assert [case.find("skipped") is not None for case in ET.fromstring(lenient.junit())] == [False, True]
    strict = Report(outcomes, target="here", is_whole=False, is_strict=True)
    assert strict.summary().startswith("FAILED")
    assert ET.fromstring(strict.junit()).get("failures") == "1"


def test_an_option_that_is_missing_is_no_failure() -> None:
    """What a MAY row lists may be left out, unless the report is strict."""
    outcomes = [outcome("second_start", Verdict.PASS), outcome("unknown_fields", Verdict.FAIL)]
    lenient = Report(outcomes, target="here", is_whole=False)
    assert not lenient.has_failed
    assert [row.verdict for row in lenient.rows if row.requirement.id == "R-160"] == [Verdict.NOT_PROVIDED]
    strict = Report(outcomes, target="here", is_whole=False, is_strict=True)
    assert strict.has_failed
    assert [row.verdict for row in strict.rows if row.requirement.id == "R-160"] == [Verdict.FAIL]


def test_a_failure_breaks_what_it_names_alone() -> None:
    """The other requirements of its scenario are not judged by it."""
    failure = Failure("a mark", "another", "S", breaks=("R-110",))
    failed = Outcome(SCENARIOS["cancel_is_not_completion"], Verdict.FAIL, 0.25, failure)
    rows = {row.requirement.id: row for row in Report([failed], target="here").rows}
    assert rows["R-110"].verdict is Verdict.FAIL
    assert rows["R-109"].verdict is Verdict.NOT_JUDGED
    assert rows["R-109"].reason == "cancel_is_not_completion failed before it was judged"


def test_a_line_of_the_table_is_cut_and_a_story_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of requirements may be long: the table has their beginning, JSON and the stories have all of them."""
    long = "word " * 100 + "end."
    for table in (ALL, BY_PROTOCOL["riff"]):
        monkeypatch.setitem(table, "R-046", replace(ALL["R-046"], text=long))
    report = Report([outcome("second_start", Verdict.FAIL)], target="here", is_whole=False)
    (line,) = (line for line in report.text().splitlines() if line.startswith("R-046"))
    assert "word word ...  [failed by second_start]" in line
    assert f"breaks:   R-046 MUST {long}" in report.text()
    assert long in report.json()
