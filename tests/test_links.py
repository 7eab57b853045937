"""The pages lead somewhere: a relative link that names no file is found here, before a reader finds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def dead(page: Path) -> list[str]:
    """The relative links of a page that name no file."""
    links = re.findall(r"\]\(([^)\s#]+)", prose(page))
    return [one for one in links if "://" not in one and not (page.parent / one).exists()]


def astray(page: Path) -> list[str]:
    """The links of a page to headings that are not there."""
    found = []
    for path, name in re.findall(r"\]\(([^)\s#]*)#([^)\s]+)\)", prose(page)):
        target = page.parent / path if path else page
        if "://" not in path and target.suffix == ".md" and target.exists() and name not in headings(target):
            found.append(f"{path}#{name}")
    return found


def prose(page: Path) -> str:
    """What stands outside of blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def headings(page: Path) -> set[str]:
    """The names by which links reach the headings of a page."""
    texts = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", one) for one in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)]
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in texts}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_lead_to_files(page: Path) -> None:
    """Those of README, CHANGELOG, CONTRIBUTING and docs/; what stands in blocks of code is no link."""
    assert not dead(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_headings(page: Path) -> None:
    """Those that name one, of this page or another."""
    assert not astray(page)


def test_a_link_to_no_heading_is_found(tmp_path: Path) -> None:
    """In this page and in others."""
    (tmp_path / "other.md").write_text("# One `two`: three\n")
    page = tmp_path / "page.md"
    page.write_text("# Here\n[a](#here) [b](#there) [c](other.md#one-two-three) [d](other.md#four)\n")
    assert astray(page) == ["#there", "other.md#four"]


def test_a_link_to_nothing_is_found(tmp_path: Path) -> None:
    """Only the one whose file is missing, whatever heading it names."""
    page = tmp_path / "page.md"
    page.write_text("[a](page.md#x) [b](gone.md#y) [c](https://example.com/z) [d](#here)\n```\n[e](code.md)\n```\n")
    assert dead(page) == ["gone.md"]


def test_the_index_leads_to_every_page() -> None:
    """Of docs/, but to the decisions by their folder."""
    index = ROOT / "docs/README.md"
    linked = {(index.parent / one).resolve() for one in re.findall(r"\]\(([^)\s#]+)", index.read_text())}
    pages = {page for page in index.parent.rglob("*.md") if page.parent.name != "adr" and page != index}
    assert {str(page.relative_to(ROOT)) for page in pages - linked} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_the_marks_of_a_conflict(page: Path) -> None:
    """Two branches that changed one paragraph leave them, and a reader would see them."""
    assert not re.findall(r"^(?:<{7} .*|={7}|>{7} .*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
