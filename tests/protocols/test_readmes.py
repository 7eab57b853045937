"""The README of each protocol's folder: its links lead to files, and what it says to try works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import ROOT, Reader, steps

PROTOCOLS = ROOT / "invoker/protocols"
FOLDERS = sorted(one.parent for one in PROTOCOLS.glob("*/__init__.py"))
EACH = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


@EACH
def test_the_folder_has_a_short_readme_whose_links_lead_to_files(folder: Path) -> None:
    """Besides what is to be tried it has at most ten lines of text; files in ``service/`` that it names are there."""
    text = (folder / "README.md").read_text().partition("Try it:")[0]
    assert len([line for line in text.splitlines() if line.strip()]) <= 10
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert [one for one in links if not (folder / one).exists()] == []
    (service,) = (line for line in text.splitlines() if line.startswith("- [`service/`]"))
    named = re.findall(r"`(\w+\.py|\w+/)`", service.partition("): ")[2].partition("[`")[0])
    assert "attach.py" in named
    assert [one for one in named if not (folder / "service" / one).exists()] == []


@EACH
@pytest.mark.timeout(60)
def test_what_the_readme_says_to_try_works(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_python: Path
) -> None:
    """It is run as the pages of the documentation are."""
    blocks = steps((folder / "README.md").read_text())
    assert blocks
    assert blocks[-1].output
    with Reader(tmp_path, monkeypatch, forked_python) as reader:
        for step in blocks:
            reader.do(step)
