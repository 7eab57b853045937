"""The pages lead somewhere: a relative link that names no file is found here, before a reader finds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def dead(page: Path) -> list[str]:
    """The relative links of a page that name no file."""
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s#]+)", prose)
    return [one for one in links if "://" not in one and not (page.parent / one).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_lead_to_files(page: Path) -> None:
    """Those of README, CHANGELOG, CONTRIBUTING and docs/; what stands in blocks of code is no link."""
    assert not dead(page)


def test_a_link_to_nothing_is_found(tmp_path: Path) -> None:
    """Only the one whose file is missing, whatever heading it names."""
    page = tmp_path / "page.md"
    page.write_text("[a](page.md#x) [b](gone.md#y) [c](https://example.com/z) [d](#here)\n```\n[e](code.md)\n```\n")
    assert dead(page) == ["gone.md"]
