"""`Requirement`: a requirement of a protocol, which reports cite; and the parser of their tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of the catalogue.

    Attributes:
        id: The id, such as ``R-046``.
        level: MUST, SHOULD, MAY or PEER (users of other servers rely on it).
        text: The requirement and, after an arrow, how it can be observed.
        unjudged: Why no scenario tests it; empty if one does.
        is_decided: Whether it is a decision of the catalogue where the specification says nothing, so that other
            servers may differ.
    """

    id: str
    level: str
    text: str
    unjudged: str
    is_decided: bool = False

    @property
    def label(self) -> str:
        """The level in reports, such as ``MUST`` or ``MUST (D)``."""
        return f"{self.level} (D)" if self.is_decided else self.level

    @property
    def is_binding(self) -> bool:
        """Whether every server must obey it, because the specification or users demand it."""
        return not self.is_decided and self.level != "MAY"


def read_table(table: str, unjudged: Mapping[str, str]) -> dict[str, Requirement]:
    """Parse lines with id, level and text; a ``*`` after the level marks a decision of the catalogue.

    Args:
        table: The text, one requirement per line; lines that begin with ``#`` are comments.
        unjudged: The reasons why requirements are not tested, by id.
    """
    rows: dict[str, Requirement] = {}
    for line in table.strip().splitlines():
        if line.startswith("#"):
            continue
        id_, level, text = line.split(maxsplit=2)
        rows[id_] = Requirement(id_, level.rstrip("*"), text, unjudged.get(id_, ""), level.endswith("*"))
    return rows


def table_of(package: str, unjudged: Mapping[str, str]) -> dict[str, Requirement]:
    """Read ``requirements.tsv`` in the package of a protocol.

    Args:
        package: The full name of the package.
        unjudged: The reasons why requirements are not tested, by id.
    """
    return read_table((files(package) / "requirements.tsv").read_text(encoding="utf-8"), unjudged)
