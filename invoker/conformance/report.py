"""The report: by requirement id, as a table, as JSON, as JUnit XML."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from invoker.conformance.evergreen.requirements import REQUIREMENTS as EVERGREEN
from invoker.conformance.graphpipe.requirements import REQUIREMENTS as GRAPHPIPE
from invoker.conformance.requirements import REQUIREMENTS as RIFF
from invoker.conformance.requirements import Requirement
from invoker.conformance.runner import Outcome, Verdict

__all__ = ["Report", "Row"]

_UNNAMED = "no scenario"
_BY_PROTOCOL = {"riff": RIFF, "evergreen": EVERGREEN, "graphpipe": GRAPHPIPE}
_ALL = RIFF | EVERGREEN | GRAPHPIPE


@dataclass(frozen=True, slots=True)
class Row:
    """The verdict on one requirement.

    Attributes:
        requirement: The one.
        verdict: FAIL if any of its scenarios failed, PASS if any passed, else NOT_PROVIDED or NOT_JUDGED.
        scenarios: Names of those that judged it.
        reason: Why it was not judged or what is not provided.
    """

    requirement: Requirement
    verdict: Verdict
    scenarios: tuple[str, ...]
    reason: str


class Report:
    """Everything that a run found.

    Args:
        outcomes: Of the run.
        target: Addresses, as the user gave them.
        is_whole: Every scenario was run, so that requirements without scenario are listed, too.
        protocols: That are judged.
    """

    def __init__(
        self,
        outcomes: Sequence[Outcome],
        *,
        target: str,
        is_whole: bool = True,
        protocols: Sequence[str] = ("riff",),
    ) -> None:
        self.outcomes = outcomes
        self.target = target
        self.title = f"{' and '.join(protocols)} conformance of {target}"
        needs = [need for protocol in protocols for need in _BY_PROTOCOL[protocol].values()]
        self.rows = [row for row in map(self._row, needs) if is_whole or row.scenarios]

    @property
    def has_failed(self) -> bool:
        """Whether anything failed, or nothing passed at all."""
        verdicts = {outcome.verdict for outcome in self.outcomes}
        return Verdict.FAIL in verdicts or Verdict.PASS not in verdicts

    def _row(self, requirement: Requirement) -> Row:
        judging = [outcome for outcome in self.outcomes if requirement.id in outcome.scenario.requirements]
        verdicts = {outcome.verdict for outcome in judging}
        names = tuple(outcome.scenario.name for outcome in judging)
        if Verdict.FAIL in verdicts:
            failed = [outcome.scenario.name for outcome in judging if outcome.verdict is Verdict.FAIL]
            return Row(requirement, Verdict.FAIL, names, f"failed by {', '.join(failed)}")
        if Verdict.PASS in verdicts:
            return Row(requirement, Verdict.PASS, names, "")
        if judging:
            lacking = dict.fromkeys(outcome.reason for outcome in judging)
            return Row(requirement, Verdict.NOT_PROVIDED, names, "; ".join(lacking))
        return Row(requirement, Verdict.NOT_JUDGED, (), requirement.unjudged or _UNNAMED)

    def summary(self) -> str:
        """One line."""
        return (
            f"{'FAILED' if self.has_failed else 'PASSED'}: "
            f"requirements {_counts(row.verdict for row in self.rows)}; "
            f"scenarios {_counts(outcome.verdict for outcome in self.outcomes)}"
        )

    def text(self) -> str:
        """The table, what failed and how, the summary."""
        lines = [self.title, ""]
        for row in self.rows:
            reason = f"  [{row.reason}]" if row.reason else ""
            need = row.requirement
            lines.append(f"{need.id}  {need.level:<6}  {row.verdict.value:<12}  {need.text}{reason}")
        for outcome in self.outcomes:
            if outcome.failure is not None:
                lines += ["", *_told(outcome)]
        return "\n".join([*lines, "", self.summary()])

    def json(self) -> str:
        """Everything, as one JSON object."""
        return json.dumps(
            {
                "target": self.target,
                "passed": not self.has_failed,
                "summary": self.summary(),
                "requirements": [
                    {
                        "id": row.requirement.id,
                        "level": row.requirement.level,
                        "text": row.requirement.text,
                        "result": row.verdict.value,
                        "reason": row.reason,
                        "scenarios": list(row.scenarios),
                    }
                    for row in self.rows
                ],
                "scenarios": [_as_json(outcome) for outcome in self.outcomes],
            },
            indent=2,
            ensure_ascii=False,
        )

    def junit(self) -> str:
        """One test case a scenario, as JUnit XML."""
        verdicts = Counter(outcome.verdict for outcome in self.outcomes)
        suite = ET.Element(
            "testsuite",
            name=self.title,
            tests=str(len(self.outcomes)),
            failures=str(verdicts[Verdict.FAIL]),
            errors="0",
            skipped=str(verdicts[Verdict.NOT_PROVIDED]),
            time=f"{sum(outcome.seconds for outcome in self.outcomes):.3f}",
        )
        for outcome in self.outcomes:
            case = ET.SubElement(
                suite,
                "testcase",
                classname=f"{outcome.scenario.protocol}.{outcome.scenario.chapter}",
                name=_title(outcome),
                time=f"{outcome.seconds:.3f}",
            )
            if outcome.failure is not None:
                failure = ET.SubElement(case, "failure", message=_xml_safe(str(outcome.failure)))
                failure.text = _xml_safe("\n".join(_told(outcome)))
            if outcome.verdict is Verdict.NOT_PROVIDED:
                ET.SubElement(case, "skipped", message=f"not provided: {outcome.reason}")
        return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def _title(outcome: Outcome) -> str:
    scenario = outcome.scenario
    return " ".join((scenario.name, *scenario.numbers, *scenario.requirements))


def _told(outcome: Outcome) -> list[str]:
    """A failed scenario: what was sent, met and expected, and which requirements it breaks."""
    failure = outcome.failure
    if failure is None:
        raise AssertionError("only failed outcomes are told")
    return [
        f"FAIL {_title(outcome)} [{outcome.scenario.functions[0]}]",
        f"  should:   {outcome.scenario.expects}",
        f"  sent:     {failure.sent}",
        f"  met:      {failure.met}",
        f"  expected: {failure.expected}",
        *(f"  breaks:   {id_} {_ALL[id_].text}" for id_ in outcome.scenario.requirements),
    ]


def _as_json(outcome: Outcome) -> dict[str, object]:
    scenario, failure = outcome.scenario, outcome.failure
    told = {"sent": failure.sent, "met": failure.met, "expected": failure.expected} if failure else {}
    return {
        "name": scenario.name,
        "protocol": scenario.protocol,
        "chapter": scenario.chapter,
        "numbers": list(scenario.numbers),
        "requirements": list(scenario.requirements),
        "functions": list(scenario.functions),
        "should": scenario.expects,
        "result": outcome.verdict.value,
        "seconds": round(outcome.seconds, 3),
        "reason": outcome.reason,
        **told,
    }


def _counts(verdicts: Iterable[Verdict]) -> str:
    counted = Counter(verdicts)
    return ", ".join(f"{counted[verdict]} {verdict.value}" for verdict in Verdict if counted[verdict])


def _xml_safe(text: str) -> str:
    """Text without the control characters that XML cannot hold."""
    return "".join(char if char >= " " or char in "\t\n" else "\ufffd" for char in text)
