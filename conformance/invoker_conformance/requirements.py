"""`Requirement`: a row of the catalogue of a protocol, which reports cite; and the tables of such rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Requirement:
    """One row of the catalogue.

    Attributes:
        id: ``R-046``.
        level: MUST, SHOULD, MAY or PEER (users of other invokers rely on it).
        text: The requirement and, after an arrow, the observation that shows it.
        unjudged: Why no scenario judges it from outside; empty when one does.
        is_decided: The specification is silent and the catalogue decides; another invoker may decide otherwise.
    """

    id: str
    level: str
    text: str
    unjudged: str
    is_decided: bool = False

    @property
    def label(self) -> str:
        """The level as reports print it: ``MUST``, ``MUST (D)``."""
        return f"{self.level} (D)" if self.is_decided else self.level

    @property
    def is_binding(self) -> bool:
        """Whether every invoker must obey it: the specification or its users demand it, not as an option."""
        return not self.is_decided and self.level != "MAY"


def read_table(table: str, unjudged: Mapping[str, str]) -> dict[str, Requirement]:
    """Read lines of id, level and text; a ``*`` after the level marks a decision of the catalogue.

    Args:
        table: One requirement a line; lines that begin with ``#`` are comments.
        unjudged: Reasons, by id.
    """
    rows: dict[str, Requirement] = {}
    for line in table.strip().splitlines():
        if line.startswith("#"):
            continue
        id_, level, text = line.split(maxsplit=2)
        rows[id_] = Requirement(id_, level.rstrip("*"), text, unjudged.get(id_, ""), level.endswith("*"))
    return rows


def table_of(package: str, unjudged: Mapping[str, str]) -> dict[str, Requirement]:
    """Read the table that lies in the package of a protocol, ``requirements.tsv``.

    Args:
        package: Its full name.
        unjudged: Reasons, by id.
    """
    return read_table((files(package) / "requirements.tsv").read_text(encoding="utf-8"), unjudged)
