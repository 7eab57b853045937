"""Variables as items of the store: what is asked for them. What comes of it: tests/protocols/toolbridge."""

from __future__ import annotations

import pytest

from invoker.core.store import PRESENT, Get, Item, Put, Reason, Refused, Scan
from invoker.core.variables import OWN, About, check_name, delete, listed, read, write
from invoker.errors import Status, VariableError


def test_one_question_reads_or_writes_a_variable():
    """A write that says nothing of tags leaves them to the store."""
    assert next(read(OWN, "a")) == Get(OWN, "var/a")
    put = next(write("s", "a", b"x", by="python"))
    assert isinstance(put, Put)
    assert (put.name, put.value, put.expects, put.keeps_about) == ("var/a", b"x", None, True)
    blind = next(write("s", "a", b"x", by="python", creates=False))
    assert isinstance(blind, Put)
    assert blind.expects == PRESENT
    assert next(delete("s", "a")) == Put("s", "var/a", None, PRESENT)
    assert next(delete("s", "a", may_be_missing=True)) == Put("s", "var/a", None, None)


def test_new_tags_keep_the_maker():
    """Who it is has to be asked."""
    talk = write("s", "a", b"x", by="python", tags={"k": "v"})
    assert next(talk) == Get("s", "var/a")
    old = next(write("s", "a", b"w", by="elixir"))
    assert isinstance(old, Put)
    put = talk.send(Item("var/a", b"w", 1, 1, old.about))
    assert isinstance(put, Put)
    assert not put.keeps_about
    with pytest.raises(StopIteration) as end:
        talk.send(Item("var/a", b"x", 1, 2, put.about))
    assert end.value.value.about == About("elixir", {"k": "v"})


def test_a_list_is_read_page_by_page():
    """Each begins behind the last name of the one before."""
    talk = listed("s", "p")
    first = next(talk)
    assert isinstance(first, Scan)
    assert (first.prefix, first.after) == ("var/p", "")
    page = tuple(Item(f"var/p{number:04}", b"", 1, 1) for number in range(first.most))
    second = talk.send(page)
    assert isinstance(second, Scan)
    assert second.after == page[-1].name


@pytest.mark.parametrize(
    ("reason", "status", "code"),
    [(Reason.UNKNOWN, Status.NOT_FOUND, "unknown"), (Reason.EXPIRED, Status.NOT_FOUND, "expired"),
     (Reason.DROPPED, Status.NOT_FOUND, "cleaned"), (Reason.ITEMS, Status.RESOURCE_EXHAUSTED, "variable_quota"),
     (Reason.BYTES, Status.RESOURCE_EXHAUSTED, "variable_quota"), (Reason.UNAVAILABLE, Status.UNAVAILABLE, "store")],
)  # fmt: skip
def test_a_refusal_of_the_store_is_an_error(reason, status, code):
    """Of its own code."""
    talk = read("s", "a")
    next(talk)
    with pytest.raises(VariableError) as caught:
        talk.send(Refused(reason))
    assert (caught.value.status, caught.value.code, caught.value.details["code"]) == (status, code, code)


def test_a_name_that_cannot_be_sent_is_refused():
    """So it never reaches a store, where it would fail what others ask as well."""
    check_name("a b é \U0001f600")
    for name in ("\ud800", "", "a\0", "x" * 257):
        with pytest.raises(VariableError, match="name"):
            check_name(name)
