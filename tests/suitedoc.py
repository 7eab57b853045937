"""The tables of requirements that the conformance suite cites, made from the catalogues in docs/reference."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests import trace

CATALOGUES = {
    "riff": "docs/reference/riff.md",
    "evergreen": "docs/reference/evergreen.md",
    "graphpipe": "docs/reference/graphpipe.md",
    "toolbridge": "docs/reference/tool-bridge.md",
    "federated": "docs/reference/federated.md",
}
_DECIDED = re.compile(r"(A\+N, )?D\d*(,D\d*)*")
_BOLD = re.compile(r"\*\*([^*`]+)\*\*")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def suite_table(protocol: str) -> Iterator[str]:
    """The lines of a protocol's table: id, level (with a star where the catalogue decides), text."""
    page = CATALOGUES[protocol]
    yield f"# Made by `make docs` from {page}; change that, not this table."
    for row in trace.catalogue((trace.ROOT / page).read_text(encoding="utf-8"), page):
        if row.kind in trace.LEVELLED:
            yield f"{row.id}\t{level(row)}\t{sentence(row)}"


def level(row: trace.Requirement) -> str:
    """MUST, SHOULD, MAY or PEER, with a star where nothing but our own decision asks for it; an extension is a MAY."""
    found = trace.LEVEL.match(row.level)
    word = found[0] if found is not None else "MAY"
    # In riff, the level says what is decided; elsewhere, the source does.
    is_decided = "(D)" in row.level or (row.kind != "R" and _DECIDED.fullmatch(row.source) is not None)
    return f"{word}*" if is_decided else word


def sentence(row: trace.Requirement) -> str:
    """What is required, an arrow, and what is observed where it holds, without the marks of Markdown."""
    parts = [_plain(one).rstrip(".") for one in (row.text, row.outcome)]
    return " -> ".join(filter(None, parts)) + "."


def _plain(markdown: str) -> str:
    return " ".join(_BOLD.sub(r"\1", _LINK.sub(r"\1", markdown)).replace("\\|", "|").replace("`", "").split())
