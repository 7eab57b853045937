"""The registry of scenarios: ids, chapters, functions, and what it covers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import invoker_conformance
from invoker_conformance import select
from invoker_conformance.catalogue import BY_PROTOCOL
from invoker_conformance.riff.probe import Probe
from invoker_conformance.scenario import PROTOCOLS, SCENARIOS, scenario

DOCUMENT = Path(invoker_conformance.__file__).parents[2] / "docs" / "reference" / "conformance.md"


def test_every_scenario_says_what_it_expects_and_judges() -> None:
    """A sentence, at least one requirement, a function, a chapter."""
    for each in SCENARIOS.values():
        assert each.expects.endswith("."), each.name
        assert each.requirements, each.name
        assert each.functions, each.name
        known = BY_PROTOCOL[each.protocol]
        assert set(each.requirements) <= known.keys(), each.name
        assert all(re.fullmatch(rf"{next(iter(known))[0]}T-\d\d", one) for one in each.numbers), each.name


def test_every_scenario_of_the_catalogue_is_carried_out() -> None:
    """All but the three that are tests of a process."""
    carried = {number for each in SCENARIOS.values() for number in each.numbers}
    assert {f"RT-{number:02}" for number in range(1, 87)} - carried == {"RT-72", "RT-73", "RT-74"}


def test_every_named_function_is_documented() -> None:
    """Others provide them from the document alone."""
    parts = re.split(r"\n## The named (?:actions|models|tools|populations)", DOCUMENT.read_text())
    for protocol, text in zip(PROTOCOLS, parts, strict=True):
        documented = set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))
        assert documented == {name for each in select(protocol=protocol) for name in each.functions}


def test_a_name_can_be_taken_only_once() -> None:
    """Two scenarios of one name would hide each other."""

    async def second_start(probe: Probe) -> None:
        """Twice."""

    with pytest.raises(ValueError, match="two scenarios are named second_start"):
        scenario("R-046", function="square")(second_start)
