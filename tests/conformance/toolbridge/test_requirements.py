"""The table of tool bridge requirements that a report cites."""

from __future__ import annotations

from invoker_conformance import select
from invoker_conformance.toolbridge.requirements import REQUIREMENTS
from tests.trace import requirements


def test_the_table_is_whole() -> None:
    """T-001 to T-178, each with its level in the catalogue and a sentence."""
    known = {id_: row for id_, row in requirements().items() if row.kind == "T"}
    assert sorted(REQUIREMENTS) == sorted(known)
    for id_, requirement in REQUIREMENTS.items():
        assert requirement.level == known[id_].level, id_
        assert requirement.text.endswith("."), id_


def test_every_requirement_is_judged_or_says_why_not() -> None:
    """And none is both."""
    judged = {id_ for each in select(protocol="toolbridge") for id_ in each.requirements}
    for id_, requirement in REQUIREMENTS.items():
        assert (id_ in judged) != bool(requirement.unjudged), id_
