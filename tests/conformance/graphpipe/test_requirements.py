"""The table of GraphPipe requirements that a report cites."""

from __future__ import annotations

from invoker_conformance import select
from invoker_conformance.graphpipe.requirements import REQUIREMENTS

UNJUDGED = {
    "GT-09": "the process is started",
    "GT-46": "a client of ours is judged",
    "GT-47": "foreign clients judge the responses: `make interop`",
    "GT-48": "a client of ours is judged",
    "GT-49": "a client of ours is judged",
    "GT-53": "takes half a minute",
    "GT-55": "our reader is judged, and foreign ones judge our writer",
    "GT-57": "a client of ours is judged",
    "GT-58": "the loop and the memory of a process are measured",
    "GT-59": "the process is stopped",
}


def test_the_table_is_whole() -> None:
    """G-001 to G-112, each with a level and a sentence."""
    assert sorted(REQUIREMENTS) == [f"G-{number:03}" for number in range(1, 113)]
    for requirement in REQUIREMENTS.values():
        assert requirement.level in {"MUST", "SHOULD", "MAY", "PEER"}
        assert requirement.text.endswith("."), requirement.id


def test_every_requirement_is_judged_or_says_why_not() -> None:
    """And none is both."""
    judged = {id_ for each in select(protocol="graphpipe") for id_ in each.requirements}
    for id_, requirement in REQUIREMENTS.items():
        assert (id_ in judged) != bool(requirement.unjudged), id_


def test_every_scenario_of_the_catalogue_is_carried_out() -> None:
    """All but those that judge a client, or take a look inside, or too long."""
    carried = {number for each in select(protocol="graphpipe") for number in each.numbers}
    assert {f"GT-{number:02}" for number in range(1, 64)} - carried == set(UNJUDGED)
