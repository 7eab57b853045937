"""The tables of the conformance suite: what a row of a catalogue becomes."""

from __future__ import annotations

import pytest

from tests import suitedoc, trace
from tests.suitedoc import CATALOGUES, level, sentence, suite_table


def row(id_: str, written: str, source: str = "S", text: str = "First.", outcome: str = "x") -> trace.Requirement:
    """A row of a catalogue."""
    return trace.Requirement(id_, written, text, "page", outcome, source)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (row("R-001", "MUST"), "MUST"),
        (row("R-001", "MUST (D)"), "MUST*"),
        (row("R-001", "MAY->we do", "D"), "MAY"),
        (row("E-001", "SHOULD", "D"), "SHOULD*"),
        (row("T-001", "MUST", "D39"), "MUST*"),
        (row("F-001", "MUST", "D1,D2"), "MUST*"),
        (row("G-001", "MUST", "A+N, D"), "MUST*"),
        (row("T-001", "MUST", "S1, D39"), "MUST"),
        (row("E-118", "EXT", "D"), "MAY*"),
        (row("E-125", "PEER"), "PEER"),
    ],
)
def test_what_only_we_decide_has_a_star(given: trace.Requirement, expected: str) -> None:
    """By its level in riff, by its source elsewhere; an extension is a MAY."""
    assert level(given) == expected


def test_a_text_is_one_plain_sentence() -> None:
    """Without marks of Markdown; behind an arrow stands what is observed, if the row says so."""
    marked = row("R-001", "MUST", text="**Two** `a\\|b` of [this](page.md#x), `**kwargs`.", outcome="`1` \\| 2.")
    assert sentence(marked) == "Two a|b of this, **kwargs -> 1 | 2."
    assert sentence(row("R-001", "MUST", text="Alone", outcome="")) == "Alone."


def test_each_row_of_a_catalogue_stands_in_its_table(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """In the order of the catalogue, with tabs; contracts, questions and scenarios do not."""
    page = tmp_path / "page.md"
    page.write_text(
        "| R-001 | MUST | First. | x | S |\n| RM-1 | `open()` | starts |\n"
        "| R-002 | MAY (D) | Second | y | D |\n| RA-01 | A question | a | b | c | d |\n"
    )
    monkeypatch.setattr(trace, "ROOT", tmp_path)
    monkeypatch.setattr(suitedoc, "CATALOGUES", {"riff": "page.md"})
    comment, *lines = suite_table("riff")
    assert comment == "# Made by `make docs` from page.md; change that, not this table."
    assert lines == ["R-001\tMUST\tFirst -> x.", "R-002\tMAY*\tSecond -> y."]


def test_each_protocol_that_is_judged_has_a_table() -> None:
    """And no other."""
    from invoker_conformance.scenario import PROTOCOLS

    assert tuple(CATALOGUES) == PROTOCOLS
    assert set(CATALOGUES.values()) < set(trace.CATALOGUES)
