"""The table of requirements that a report cites."""

from __future__ import annotations

from invoker_conformance import select
from invoker_conformance.riff.requirements import REQUIREMENTS


def test_the_table_is_whole() -> None:
    """R-001 to R-171, each with a level and a sentence."""
    assert list(REQUIREMENTS) == [f"R-{number:03}" for number in range(1, 172)]
    for requirement in REQUIREMENTS.values():
        assert requirement.level in {"MUST", "SHOULD", "MAY", "PEER"}
        assert requirement.text.endswith("."), requirement.id


def test_every_requirement_is_judged_or_says_why_not() -> None:
    """And none is both."""
    judged = {id_ for each in select() for id_ in each.requirements}
    for id_, requirement in REQUIREMENTS.items():
        assert (id_ in judged) != bool(requirement.unjudged), id_
