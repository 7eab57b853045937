"""docs/adr: the index names every decision, with its title and whether another one has taken its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "docs/adr"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))
ROWS = re.findall(
    r"^\| \[(\d+)\]\(([^)]+)\) \| (.+?) \| (.+?) \| (.+?) \|$", (FOLDER / "README.md").read_text(), re.MULTILINE
)
EACH = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def test_the_index_lists_each_decision_once_in_order() -> None:
    """A page without a row, or a row without a page, is found."""
    assert [name for _, name, *_ in ROWS] == [page.name for page in PAGES]


def test_numbers_are_given_once() -> None:
    """Two pages of one number could not be told apart where they are mentioned."""
    numbers = [page.name[:4] for page in PAGES]
    assert len(set(numbers)) == len(numbers)


@EACH
def test_the_row_says_what_the_page_says(page: Path) -> None:
    """Its number, its title, and the pages that supersede it."""
    (row,) = (one for one in ROWS if one[1] == page.name)
    number, _, title, status, clause = row
    text = page.read_text()
    heading = re.match(r"# (?:ADR )?(\d+)[.:] (.+)", text)
    assert heading is not None
    assert (int(page.name[:4]), number, title) == (int(heading[1]), heading[1], heading[2])
    said = re.search(r"^Status: (.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    later = re.findall(r"(?:superseded|replaced) by\s+\[ADR (\d+)\]", said[1] if said else "")
    assert re.findall(r"\[(\d+)\]", status) == later
    assert status.startswith("accepted")
    assert clause
