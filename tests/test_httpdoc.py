"""`tests.httpdoc`: the tables of docs/reference/http.md are whole; tests/e2e/test_reference.py asks for their rows."""

from __future__ import annotations

from invoker.errors.http import HTTP_STATUS
from tests import gendocs, trace
from tests.httpdoc import tables


def test_rows_are_as_wide_as_their_heads_and_differ() -> None:
    """Each can be told from the others by its first cells."""
    for name, table in tables().items():
        assert {len(row) for row in table.rows} == {len(table.head)}, name
        assert len(set(table.keys)) == len(table.rows), name


def test_the_formats_are_those_that_are_written() -> None:
    """Bytes of the formats, with a sign for line feeds."""
    rows = {row[0]: row for row in tables()["formats"].rows}
    assert rows["`text/event-stream`"][1] == '`id: 1\u23cedata: "a"\u23ce\u23ce`'
    assert rows["`application/x-ndjson`"][2] == '`{"words":"a"}\u23ce`'


def test_every_status_that_a_function_may_choose_is_told() -> None:
    """By the names of `Status`."""
    names = {one.strip("`") for row in tables()["chosen"].rows for one in row[1].split(", ")}
    assert names == {status.name for status in HTTP_STATUS}


def test_the_page_marks_every_table() -> None:
    """Nothing between the marks is written by hand."""
    page = "\n".join(gendocs.http_page()) + "\n"
    assert page == (trace.ROOT / "docs/reference/http.md").read_text(encoding="utf-8")
    for name in tables():
        assert page.count(f"<!-- table: {name} -->") == 1
