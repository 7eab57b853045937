"""Rows of catalogues, and the tables that they are written in."""

from __future__ import annotations

import re
from pathlib import Path

from invoker_conformance.catalogue import ALL
from invoker_conformance.requirements import Requirement, read_table, table_of


def test_a_table_has_a_requirement_a_line() -> None:
    """Id, level, sentence; a star marks a decision, and what nobody judges says why."""
    found = read_table("R-1 MUST A b.\nR-2 MAY*   C d.", {"R-2": "because"})
    assert found == {
        "R-1": Requirement("R-1", "MUST", "A b.", ""),
        "R-2": Requirement("R-2", "MAY", "C d.", "because", is_decided=True),
    }
    assert [(one.label, one.is_binding) for one in found.values()] == [("MUST", True), ("MAY (D)", False)]


def test_a_protocol_has_its_table_in_its_package() -> None:
    """Comments are no rows."""
    found = table_of("invoker_conformance.riff", {"R-002": "because"})
    assert list(found)[:2] == ["R-001", "R-002"]
    assert (found["R-001"].unjudged, found["R-002"].unjudged) == ("", "because")
    assert read_table("# R-1 MUST A b.\nR-2 MAY C d.", {}) == {"R-2": Requirement("R-2", "MAY", "C d.", "")}


def test_levels_and_decisions_are_those_of_the_catalogues() -> None:
    """What a row of docs/reference marks with (D), or has no other source for than D, is a decision."""
    letters = {"riff": "R", "evergreen": "E", "graphpipe": "G", "toolbridge": "T", "federated": "F"}
    for protocol, letter in letters.items():
        page = Path(__file__).parents[2] / "docs" / "reference" / f"{protocol.replace('toolbridge', 'tool-bridge')}.md"
        for id_, *cells in re.findall(
            rf"^\| ({letter}-\d+) \| ([^|]*) \|.*\| ([^|]*) \|$", page.read_text(), re.MULTILINE
        ):
            level, source = cells
            decided = (
                "(D)" in level if letter == "R" and id_ != "R-145" else re.fullmatch(r"(A\+N, )?D\d*(,D\d*)*", source)
            )
            assert ALL[id_].is_decided == bool(decided), (id_, level, source)
