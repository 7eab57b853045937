"""The table of requirements that a report cites."""

from __future__ import annotations

import re
from pathlib import Path

from invoker.conformance import select
from invoker.conformance.catalogue import ALL
from invoker.conformance.riff.requirements import REQUIREMENTS


def test_the_table_is_whole() -> None:
    """R-001 to R-170, each with a level and a sentence."""
    assert list(REQUIREMENTS) == [f"R-{number:03}" for number in range(1, 171)]
    for requirement in REQUIREMENTS.values():
        assert requirement.level in {"MUST", "SHOULD", "MAY", "PEER"}
        assert requirement.text.endswith("."), requirement.id


def test_levels_and_decisions_are_those_of_the_catalogues() -> None:
    """What a row of docs/reference marks with (D), or has no other source for than D, is a decision."""
    for protocol, letter in (("riff", "R"), ("evergreen", "E"), ("graphpipe", "G")):
        page = Path(__file__).parents[2] / "docs" / "reference" / f"{protocol}.md"
        for id_, *cells in re.findall(
            rf"^\| ({letter}-\d+) \| ([^|]*) \|.*\| ([^|]*) \|$", page.read_text(), re.MULTILINE
        ):
            level, source = cells
            decided = "(D)" in level if letter == "R" and id_ != "R-145" else re.fullmatch(r"(A\+N, )?D\d*", source)
            assert ALL[id_].is_decided == bool(decided), (id_, level, source)


def test_every_requirement_is_judged_or_says_why_not() -> None:
    """And none is both."""
    judged = {id_ for each in select() for id_ in each.requirements}
    for id_, requirement in REQUIREMENTS.items():
        assert (id_ in judged) != bool(requirement.unjudged), id_
