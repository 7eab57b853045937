"""`python -m tools trace`: which requirements have a test that bears their id.

A requirement is a row ``| R-046 | MUST | ... |`` of a catalogue in docs/reference; below a heading that says EXT or
PEER, rows have no level of their own. A test bears an id when its name or the first line of its docstring holds it:
``test_R046_...``, ``R-046``. Fails when a MUST has no test, or a test names an id that is in no catalogue. Writes
nothing.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CATALOGUES = (
    "docs/reference/riff.md",
    "docs/reference/evergreen.md",
    "docs/reference/graphpipe.md",
    "docs/reference/tool-bridge.md",
    "docs/reference/federated.md",
    "docs/reference/http-door.md",
)

# Digits with which an id is written. RM rows, the contract of handler ends, carry no level and are all binding.
WIDTHS = {"R": 3, "RM": 1, "RA": 2, "RT": 2, "E": 3, "EA": 2, "ET": 2, "G": 3, "GT": 2, "T": 3, "F": 3, "H": 3}
BINDING = {"RM"}
LEVELLED = {"R", "E", "G", "T", "F", "H"}
LABELS = {"RM": "contract", "RT": "scenario", "ET": "scenario", "GT": "scenario", "RA": "", "EA": ""}
ID = re.compile(rf"(?<![A-Za-z0-9])({'|'.join(sorted(WIDTHS, key=len, reverse=True))})[-_]?(\d+)(?![0-9])")
ROW = re.compile(rf"^\| ?((?:{'|'.join(WIDTHS)})-\d+) ?\| ?(.*?) ?\|$", re.MULTILINE)
LEVEL = re.compile(r"(?:MUST|SHOULD|MAY|PEER)\b")
HEADING = re.compile(r"^#+ .*?(?:\b(EXT|PEER)\b.*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One row of a catalogue.

    Attributes:
        id: ``R-046``.
        level: MUST, SHOULD, MAY, PEER or EXT as it is written there, or empty.
        text: What is required, as Markdown.
        catalogue: File that holds the row, relative to the root.
        outcome: What is observed where it holds, as Markdown; empty where the row has no such cell.
        source: Where it comes from: the last cell of a row that has an outcome.
    """

    id: str
    level: str
    text: str
    catalogue: str
    outcome: str = ""
    source: str = ""

    @property
    def kind(self) -> str:
        """``R``, ``RM``, ``RA`` or ``RT``; ``E``, ``EA`` or ``ET``; ``G`` or ``GT``; ``T``; ``F``; ``H``."""
        return self.id.partition("-")[0]

    @property
    def is_must(self) -> bool:
        """Whether it needs a test."""
        return self.level.startswith("MUST") or self.kind in BINDING


def catalogue(text: str, name: str = "") -> list[Requirement]:
    """The rows of one catalogue, in order."""
    rows, of_heading = [], ""
    for line in text.splitlines():
        if heading := HEADING.match(line):
            of_heading = heading[1] or ""
        elif row := ROW.match(line):
            cells = [cell.strip() for cell in row[2].split(" | ")]
            is_levelled = row[1].partition("-")[0] in LEVELLED
            has_level = is_levelled and LEVEL.match(cells[0]) is not None
            level = cells[0] if has_level else of_heading if is_levelled else ""
            text, *behind = cells[1 if has_level else 0 :]
            outcome, source = behind if is_levelled and len(behind) == 2 else ("", "")
            rows.append(Requirement(row[1], level, text, name, outcome, source))
    return rows


def requirements(root: Path = ROOT) -> dict[str, Requirement]:
    """Every row of every catalogue, by id."""
    rows = [row for name in CATALOGUES for row in catalogue((root / name).read_text(encoding="utf-8"), name)]
    return {row.id: row for row in rows}


def ids(text: str) -> Iterator[str]:
    """The ids that a text holds, spelled as in the catalogue; numbers of another width are no ids."""
    for kind, digits in ID.findall(text):
        if len(digits) == WIDTHS[kind]:
            yield f"{kind}-{digits}"


def borne(source: str) -> dict[str, list[str]]:
    """The ids borne by the tests of one file, with the names of those tests."""
    found: dict[str, list[str]] = defaultdict(list)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            for id_ in dict.fromkeys(ids(f"{node.name.removeprefix('test_')} {first}")):
                found[id_].append(node.name)
    return found


def all_borne(root: Path = ROOT) -> dict[str, list[str]]:
    """The files, relative to the root, whose tests bear an id; by id."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((root / "tests").rglob("test_*.py")):
        for id_ in borne(path.read_text(encoding="utf-8")):
            found[id_].append(path.relative_to(root).as_posix())
    return found


def problems(known: Mapping[str, Requirement], found: Mapping[str, Sequence[str]]) -> list[str]:
    """One sentence for each MUST without a test and each id that is in no catalogue."""
    missing = [
        f"{row.id} ({row.level or 'binding'}) has no test: {row.text}"
        for row in known.values()
        if row.is_must and row.id not in found
    ]
    unknown = [
        f"{id_} is in no catalogue; named by {', '.join(files)}" for id_, files in found.items() if id_ not in known
    ]
    return missing + unknown


def summary(known: Mapping[str, Requirement], found: Mapping[str, Sequence[str]]) -> list[str]:
    """How many rows of each level have a test; one line a catalogue."""
    totals: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for row in known.values():
        label = LABELS.get(row.kind, re.split(r"\W", row.level)[0])
        if label:
            totals[row.catalogue][label].append(row.id in found)
    return [
        f"{name}: " + ", ".join(f"{label} {sum(has)} of {len(has)}" for label, has in levels.items())
        for name, levels in totals.items()
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Print what is missing and give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.trace", description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to look at")
    args = parser.parse_args(argv)
    known, found = requirements(args.root), all_borne(args.root)
    wrong = problems(known, found)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    print("rows with a test that bears their id:", *summary(known, found), sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
