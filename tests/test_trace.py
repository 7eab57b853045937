"""The trace finds what it should, in small trees.

The samples are written with ``check_`` for ``test_``, so that no tool takes them for tests of this tree.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import trace

CATALOGUE = """
| Id | Level | Requirement | Outcome | Source |
|---|---|---|---|---|
| R-001 | MUST | First. | x | S |
| R-002 | MUST (D) | Second, with `code` in it. | x | D |
| R-003 | SHOULD | Third. | x | S |
| R-004 | MAY->we do | Fourth. | x | S |

| RM-1 | `open()` | starts |
| RA-01 | A question | a | b | c | d |
| RT-01 | square | S(json) | 4 |
"""

SECOND = """
### 2.1 Session

| Id | Level | Requirement | Outcome | Source |
|---|---|---|---|---|
| E-001 | MUST | Served. | x | PS |
| E-002 | MAY->yes | A switch. | x | S |

### 2.9 Extensions (all EXT, off unless negotiated)

| Id | Requirement | Outcome | Basis |
|---|---|---|---|
| E-003 | MUSTard is no level. | x | D |

### 2.10 Expectations (PEER)

| E-004 | Handlers. | x | AE |

## 3. Ambiguities

| EA-01 | A question | a | b | c |
| ET-01 | upper | A(upper) | HI |
"""


def sample(source: str) -> str:
    """The source of a test file."""
    return source.replace("check_", "test_")


def tree(root: Path, tests: str) -> Path:
    """A tree with the catalogue above and one test file."""
    (root / "docs/reference").mkdir(parents=True)
    (root / "docs/reference/riff.md").write_text(CATALOGUE)
    (root / "docs/reference/evergreen.md").write_text(SECOND.replace("| E-001 | MUST", "| E-001 | SHOULD"))
    (root / "docs/reference/graphpipe.md").write_text("| G-001 | SHOULD | A body. | 200 | S3 |\n| GT-01 | Bytes |\n")
    (root / "docs/reference/tool-bridge.md").write_text("| T-001 | SHOULD | A session. | yes | S1 |\n")
    (root / "docs/reference/federated.md").write_text("| F-001 | SHOULD | A checkin. | else not | S4 |\n")
    (root / "docs/reference/http-door.md").write_text("| H-001 | SHOULD | A stream. | items | D |\n")
    (root / "tests").mkdir()
    (root / "tests/test_it.py").write_text(sample(tests))
    return root


def test_a_row_is_read_with_its_level() -> None:
    """Ids, levels and sentences come from the tables; headings and rules are no rows."""
    rows = {row.id: row for row in trace.catalogue(CATALOGUE)}
    assert list(rows) == ["R-001", "R-002", "R-003", "R-004", "RM-1", "RA-01", "RT-01"]
    assert rows["R-002"].level == "MUST (D)"
    assert rows["R-001"].text == "First."
    assert [row.id for row in rows.values() if row.is_must] == ["R-001", "R-002", "RM-1"]


def test_a_row_without_a_level_has_that_of_its_heading() -> None:
    """Extensions and what peers expect are marked once, for their table; questions and scenarios have none."""
    rows = {row.id: row for row in trace.catalogue(SECOND)}
    assert {id_: (row.level, row.text) for id_, row in rows.items()} == {
        "E-001": ("MUST", "Served."),
        "E-002": ("MAY->yes", "A switch."),
        "E-003": ("EXT", "MUSTard is no level."),
        "E-004": ("PEER", "Handlers."),
        "EA-01": ("", "A question"),
        "ET-01": ("", "upper"),
    }
    assert [row.id for row in rows.values() if row.is_must] == ["E-001"]


WHOLE = {
    "docs/reference/riff.md": {f"R-{n:03}" for n in range(1, 164)} | {f"RM-{n}" for n in range(1, 7)},
    "docs/reference/evergreen.md": {f"E-{n:03}" for n in range(1, 132)} | {f"ET-{n:02}" for n in range(1, 95)},
    "docs/reference/graphpipe.md": {f"G-{n:03}" for n in range(1, 113)} | {f"GT-{n:02}" for n in range(1, 64)},
    "docs/reference/tool-bridge.md": {f"T-{n:03}" for n in range(1, 179)},
    "docs/reference/federated.md": {f"F-{n:03}" for n in range(1, 147)},
    "docs/reference/http-door.md": set(),
}


@pytest.mark.parametrize("name", trace.CATALOGUES)
def test_the_catalogue_is_whole(name: str) -> None:
    """The product's own catalogues have all their rows, once, each with a level that is known."""
    text = (trace.ROOT / name).read_text(encoding="utf-8")
    rows = [row.id for row in trace.catalogue(text)]
    assert len(rows) == len(set(rows))
    assert set(rows) >= WHOLE[name]
    assert {row.level.split()[0] for row in trace.catalogue(text) if row.kind in trace.LEVELLED} <= {
        "MUST",
        "SHOULD",
        "MAY",
        "MAY->we",
        "MAY->no",
        "MAY->yes",
        "MAY->opt-in",
        "PEER",
        "EXT",
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def check_R046_twice(): ...", ["R-046"]),
        ("def check_R_046_twice(): ...", ["R-046"]),
        ("async def check_R046_R047_both(): ...", ["R-046", "R-047"]),
        ('def check_it():\n    """R-046: said here."""', ["R-046"]),
        ('def check_it():\n    """One line.\n\n    R-046 is too late."""', []),
        ("class TestIt:\n    def check_RM1_open(self): ...", ["RM-1"]),
        ("def check_RT07_second_start(): ...", ["RT-07"]),
        ("def helper_R046(): ...", []),
        ("def check_R46_and_R0461(): ...", []),
        ("def check_RATHER100_things(): ...", []),
        ("def check_E046_ET28_EA19_text(): ...", ["E-046", "ET-28", "EA-19"]),
        ("def check_G021_GT13_text(): ...", ["G-021", "GT-13"]),
        ('def check_it():\n    """UTF-8 and E-46 and TE-046 are none; E-046 is."""', ["E-046"]),
    ],
)
def test_what_bears_an_id(source: str, expected: list[str]) -> None:
    """Names and first docstring lines of tests bear ids; other places and other widths do not."""
    assert list(trace.borne(sample(source))) == expected


def test_a_must_without_a_test_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The missing id and its sentence are printed; SHOULD and MAY are free."""
    root = tree(tmp_path, "def check_R001_first(): ...\ndef check_RM1_open(): ...\n")
    assert trace.main(["--root", str(root)]) == 1
    said = capsys.readouterr()
    assert said.err.splitlines() == ["R-002 (MUST (D)) has no test: Second, with `code` in it."]
    assert "docs/reference/riff.md: MUST 1 of 2" in said.out
    assert "docs/reference/evergreen.md: SHOULD 0 of 1, MAY 0 of 1, EXT 0 of 1, PEER 0 of 1" in said.out


def test_an_unknown_id_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A test that names an id of no catalogue is reported with its file."""
    root = tree(tmp_path, "def check_R001_R002_RM1_R999(): ...\n")
    assert trace.main(["--root", str(root)]) == 1
    assert capsys.readouterr().err == "R-999 is in no catalogue; named by tests/test_it.py\n"


def test_a_whole_tree_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is said on stderr when each MUST has its test."""
    root = tree(tmp_path, "def check_R001_R002_RM1_all(): ...\n")
    assert trace.main(["--root", str(root)]) == 0
    assert capsys.readouterr().err == ""


def test_a_row_says_what_is_observed_and_where_it_comes_from() -> None:
    """If its kind has a level and its cells are those of a requirement; else neither."""
    rows = {row.id: (row.outcome, row.source) for row in trace.catalogue(CATALOGUE + SECOND)}
    assert rows["R-002"] == ("x", "D")
    assert rows["E-003"] == ("x", "D")
    assert rows["RA-01"] == rows["RM-1"] == ("", "")
