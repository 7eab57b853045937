"""The requirements of all protocols in one table, and which of them are judged."""

from __future__ import annotations

import re

import pytest

from invoker_conformance import select
from invoker_conformance.catalogue import ALL, BY_PROTOCOL
from invoker_conformance.scenario import PROTOCOLS
from tests.trace import requirements

LAST = {"riff": "R-171", "evergreen": "E-131", "graphpipe": "G-112", "toolbridge": "T-178", "federated": "F-146"}
SCENARIOS = {"evergreen": 94, "graphpipe": 63}
"""The last number of a scenario in the catalogues that number them without gaps."""

UNJUDGED = {
    "ET-68": "needs a host beyond this one",
    "ET-93": "the process is stopped",
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


def test_no_id_is_lost() -> None:
    """Every protocol has its rows, and the ids of none hide those of another."""
    assert tuple(BY_PROTOCOL) == PROTOCOLS == tuple(LAST)
    assert len(ALL) == sum(map(len, BY_PROTOCOL.values()))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_table_is_whole(protocol: str) -> None:
    """From 001 to the last one, each with its level in the catalogue and a sentence."""
    letter, last = LAST[protocol].split("-")
    assert sorted(BY_PROTOCOL[protocol]) == [f"{letter}-{number:03}" for number in range(1, int(last) + 1)]
    known = requirements()
    for id_, requirement in BY_PROTOCOL[protocol].items():
        assert requirement.level == re.split(r" \(D\)|->", known[id_].level)[0].replace("EXT", "MAY"), id_
        assert requirement.text.endswith("."), id_


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_requirement_is_judged_or_says_why_not(protocol: str) -> None:
    """And none is both."""
    judged = {id_ for each in select(protocol=protocol) for id_ in each.requirements}
    for id_, requirement in BY_PROTOCOL[protocol].items():
        assert (id_ in judged) != bool(requirement.unjudged), id_


@pytest.mark.parametrize("protocol", SCENARIOS)
def test_every_scenario_of_a_catalogue_is_carried_out(protocol: str) -> None:
    """All but those that judge a client, or take a look inside, or too long, or another host."""
    carried = {number for each in select(protocol=protocol) for number in each.numbers}
    letter = LAST[protocol][0]
    lacking = {f"{letter}T-{number:02}" for number in range(1, SCENARIOS[protocol] + 1)} - carried
    assert lacking == {number for number in UNJUDGED if number.startswith(letter)}
