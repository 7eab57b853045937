"""The report: by requirement id, as a table, as JSON, as JUnit XML.

Requirements with "MUST (D)" are decisions of the catalogue where the specification says nothing. They are counted
separately, since a server that decides otherwise still obeys the specification. Such requirements, and options (MAY),
fail a run only if the report is strict.
"""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from invoker_conformance.catalogue import ALL, BY_PROTOCOL
from invoker_conformance.requirements import Requirement
from invoker_conformance.runner import Outcome, Verdict

_UNNAMED = "no scenario"
_TEXT_SIGNS = 160  # JSON and the description of a failure have the full text
_DECIDED = "Decided by the catalogue where the specification is silent (D)"


@dataclass(frozen=True, slots=True)
class Row:
    """The verdict on one requirement.

    Attributes:
        requirement: The requirement.
        verdict: FAIL if one of its scenarios failed because of it, PASS if one passed, otherwise NOT_PROVIDED or
            NOT_JUDGED.
        scenarios: The names of the scenarios that tested it.
        reason: Why it was not tested, or which feature is not provided.
    """

    requirement: Requirement
    verdict: Verdict
    scenarios: tuple[str, ...]
    reason: str


class Report:
    """All results of a run.

    Args:
        outcomes: The outcomes of the run.
        target: The addresses that the user gave.
        is_whole: Whether every scenario was run; requirements without a scenario are then listed, too.
        protocols: The tested protocols.
        is_strict: Whether decisions of the catalogue, and options, count like other requirements.
    """

    def __init__(
        self,
        outcomes: Sequence[Outcome],
        *,
        target: str,
        is_whole: bool = True,
        protocols: Sequence[str] = ("riff",),
        is_strict: bool = False,
    ) -> None:
        self.outcomes = outcomes
        self.is_strict = is_strict
        self.target = target
        self.title = f"{' and '.join(protocols)} conformance of {target}"
        needs = [need for protocol in protocols for need in BY_PROTOCOL[protocol].values()]
        self.rows = [row for row in map(self._row, needs) if is_whole or row.scenarios]

    @property
    def has_failed(self) -> bool:
        """Whether a scenario failed, or none passed."""
        passed = any(outcome.verdict is Verdict.PASS for outcome in self.outcomes)
        return not passed or any(map(self._fails_run, self.outcomes))

    def _fails_run(self, outcome: Outcome) -> bool:
        """Whether an outcome fails the run."""
        return outcome.verdict is Verdict.FAIL and (self.is_strict or outcome.is_binding)

    def _row(self, requirement: Requirement) -> Row:
        id_ = requirement.id
        judging = [each for each in self.outcomes if id_ in each.broken or id_ in each.scenario.requirements]
        names = tuple(outcome.scenario.name for outcome in judging)
        if failed := [outcome.scenario.name for outcome in judging if id_ in outcome.broken]:
            optional = requirement.level == "MAY" and not self.is_strict
            verdict = Verdict.NOT_PROVIDED if optional else Verdict.FAIL
            return Row(requirement, verdict, names, f"failed by {', '.join(failed)}")
        reasons = {outcome.verdict: "" for outcome in judging}
        if Verdict.PASS in reasons:
            return Row(requirement, Verdict.PASS, names, "")
        for verdict in (Verdict.NOT_PROVIDED, Verdict.NOT_JUDGED):
            if verdict in reasons:
                told = dict.fromkeys(outcome.reason for outcome in judging if outcome.verdict is verdict)
                return Row(requirement, verdict, names, "; ".join(told))
        if judging:
            return Row(requirement, Verdict.NOT_JUDGED, names, f"{names[0]} failed before it was judged")
        return Row(requirement, Verdict.NOT_JUDGED, (), requirement.unjudged or _UNNAMED)

    def summary(self) -> str:
        """One line: passed or failed, and the counts of each verdict."""
        parts = [
            f"{name} {_counts(row.verdict for row in rows)}"
            for name, rows in (("requirements", self._asked()), ("decisions", self._decided()))
            if rows
        ]
        told = "; ".join([*parts, f"scenarios {_counts(outcome.verdict for outcome in self.outcomes)}"])
        return f"{'FAILED' if self.has_failed else 'PASSED'}: {told}"

    def _asked(self) -> list[Row]:
        return [row for row in self.rows if not row.requirement.is_decided]

    def _decided(self) -> list[Row]:
        return [row for row in self.rows if row.requirement.is_decided]

    def text(self) -> str:
        """The table, a description of each failure, and the summary."""
        lines = [self.title]
        counting = "they count like the others" if self.is_strict else "they count with --strict only"
        for heading, rows in (("", self._asked()), (f"{_DECIDED}; {counting}", self._decided())):
            if rows:
                lines += ["", *filter(None, [heading]), *map(_line, rows)]
        for outcome in self.outcomes:
            if outcome.failure is not None:
                lines += ["", *_told(outcome)]
        return "\n".join([*lines, "", self.summary()])

    def json(self) -> str:
        """The whole report as one JSON object."""
        return json.dumps(
            {
                "target": self.target,
                "passed": not self.has_failed,
                "summary": self.summary(),
                "requirements": [
                    {
                        "id": row.requirement.id,
                        "level": row.requirement.level,
                        "decided": row.requirement.is_decided,
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
        """The report as JUnit XML, with one test case per scenario."""
        verdicts = Counter(outcome.verdict for outcome in self.outcomes)
        suite = ET.Element(
            "testsuite",
            name=self.title,
            tests=str(len(self.outcomes)),
            failures=str(failures := sum(map(self._fails_run, self.outcomes))),
            errors="0",
            skipped=str(len(self.outcomes) - failures - verdicts[Verdict.PASS]),
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
            if outcome.failure is not None and self._fails_run(outcome):
                failure = ET.SubElement(case, "failure", message=_xml_safe(str(outcome.failure)))
                failure.text = _xml_safe("\n".join(_told(outcome)))
            elif outcome.verdict is not Verdict.PASS:
                reason = outcome.reason or f"it does not count without --strict: {outcome.failure}"
                ET.SubElement(case, "skipped", message=_xml_safe(f"{outcome.verdict.value}: {reason}"))
        return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def _line(row: Row) -> str:
    need, reason = row.requirement, f"  [{row.reason}]" if row.reason else ""
    text = textwrap.shorten(need.text, _TEXT_SIGNS, placeholder=" ...")
    return f"{need.id}  {need.label:<10}  {row.verdict.value:<12}  {text}{reason}"


def _title(outcome: Outcome) -> str:
    scenario = outcome.scenario
    return " ".join((scenario.name, *scenario.numbers, *scenario.requirements))


def _told(outcome: Outcome) -> list[str]:
    """Describe a failed scenario: what was sent, met and expected, and the requirements that it breaks."""
    failure = outcome.failure
    if failure is None:
        raise AssertionError("only failed outcomes are reported")
    return [
        f"FAIL {_title(outcome)} [{outcome.scenario.functions[0]}]",
        f"  should:   {outcome.scenario.expects}",
        f"  sent:     {failure.sent}",
        f"  met:      {failure.met}",
        f"  expected: {failure.expected}",
        *(f"  breaks:   {id_} {ALL[id_].label} {ALL[id_].text}" for id_ in outcome.broken),
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
        "breaks": list(outcome.broken),
        **told,
    }


def _counts(verdicts: Iterable[Verdict]) -> str:
    counted = Counter(verdicts)
    return ", ".join(f"{counted[verdict]} {verdict.value}" for verdict in Verdict if counted[verdict])


def _xml_safe(text: str) -> str:
    """The text without control characters that XML cannot contain."""
    return "".join(char if char >= " " or char in "\t\n" else "\ufffd" for char in text)
