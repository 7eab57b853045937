"""The table of Evergreen requirements that a report cites."""

from __future__ import annotations

from invoker_conformance import select
from invoker_conformance.evergreen.requirements import REQUIREMENTS


def test_the_table_is_whole() -> None:
    """E-001 to E-131, each with a level and a sentence."""
    assert list(REQUIREMENTS) == [f"E-{number:03}" for number in range(1, 132)]
    for requirement in REQUIREMENTS.values():
        assert requirement.level in {"MUST", "SHOULD", "MAY", "PEER"}
        assert requirement.text.endswith("."), requirement.id


def test_every_requirement_is_judged_or_says_why_not() -> None:
    """And none is both."""
    judged = {id_ for each in select(protocol="evergreen") for id_ in each.requirements}
    for id_, requirement in REQUIREMENTS.items():
        assert (id_ in judged) != bool(requirement.unjudged), id_


def test_every_scenario_of_the_catalogue_is_carried_out() -> None:
    """All but those that need a host beyond this one, or the end of the process."""
    carried = {number for each in select(protocol="evergreen") for number in each.numbers}
    assert {f"ET-{number:02}" for number in range(1, 95)} - carried == {"ET-68", "ET-93"}
