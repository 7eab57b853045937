"""`invoker.transports.http.codings`: which coding a client gets, and which ones its body has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.core.http import RequestHead
from invoker.errors import UnsupportedMediaType
from invoker.transports.http.codings import GZIP, IDENTITY, PLAIN, ZSTD, Choice, chosen, packed_with

BOTH = (ZSTD, GZIP)


def asking(*values: str, name: str = "accept-encoding") -> RequestHead:
    return RequestHead("GET", "/", headers=[(name, value) for value in values])


@pytest.mark.parametrize(
    ("accept", "coding"),
    [
        ("gzip", GZIP), ("GZip", GZIP), ("x-gzip", GZIP), ("zstd", ZSTD), ("gzip, zstd", ZSTD), ("br, gzip", GZIP),
        ("gzip;q=0.9, zstd;q=0.1", GZIP), ("gzip ; q=0.5,zstd;q=0.50", ZSTD), ("gzip, deflate, br, zstd", ZSTD),
        ("*", GZIP), ("gzip;q=0.3, *;q=0.3", GZIP), ("zstd;q=0, *", GZIP), ("gzip;q=1.000", GZIP),
        ("gzip;q=0.001", GZIP), ("gzip;q=0, *;q=0.1", ZSTD),
        ("identity;q=0.5, gzip;q=0.8", GZIP), ("identity, gzip", GZIP), ("identity;q=0.5, gzip;q=0.5", GZIP),
        # What is not well formed counts as not listed.
        ("gzip;q=2, zstd", ZSTD), ("gzip;q=, zstd", ZSTD), ("gzip;x=1, zstd", ZSTD), (",,gzip,", GZIP),
        ("gz ip, gzip", GZIP),
    ],
)  # fmt: skip
def test_H130_the_coding_is_the_one_that_the_client_likes_best(accept: str, coding: str) -> None:
    """Of those that it likes as much, ours comes first; one that it names comes before a star."""
    assert chosen(asking(accept), BOTH) == Choice(coding)


@pytest.mark.parametrize(
    "accept",
    ["", "identity", "br", "gzip;q=0", "gzip;q=0, zstd;q=0.0", "identity;q=0.9, gzip;q=0.8", "*;q=0.1, identity"],
)
def test_H130_a_client_may_want_nothing_packed(accept: str) -> None:
    """That is what all of these say; and without the header nothing is packed, either."""
    assert chosen(asking(accept), (GZIP,)) == chosen(RequestHead("GET", "/"), BOTH) == PLAIN


@pytest.mark.parametrize("accept", ["identity;q=0", "*;q=0", "identity;q=0, br", "identity;q=0, gzip;q=0"])
def test_H131_a_client_may_want_nothing_that_there_is(accept: str) -> None:
    """Neither `identity` nor one of ours is left."""
    assert chosen(asking(accept), BOTH) is None


@pytest.mark.parametrize("accept", ["identity;q=0, gzip", "*;q=0, gzip;q=0.2", "gzip, identity;q=0.000"])
def test_H131_a_client_may_want_everything_packed(accept: str) -> None:
    """Since it takes no `identity`."""
    assert chosen(asking(accept), BOTH) == Choice(GZIP, is_forced=True)


def test_values_of_a_repeated_header_are_one_list() -> None:
    """RFC 9110, 5.3."""
    assert chosen(asking("gzip;q=0.5", "zstd;q=0.2"), BOTH) == Choice(GZIP)
    assert packed_with(asking("gzip", "deflate, identity", name="content-encoding")) == (GZIP, "deflate")


@given(st.text(alphabet='gzipstdbrxy*;q=01. ,\t"-/', max_size=60))
def test_any_list_leads_to_a_coding_that_is_there(accept: str) -> None:
    """Whatever a client sends; one that is not listed is never taken unless a star is."""
    choice = chosen(asking(accept), BOTH)
    assert choice is None or choice.coding in (IDENTITY, *BOTH)
    if choice is not None and choice.coding != IDENTITY:
        assert choice.coding in accept or "*" in accept


def test_a_very_long_list_is_cut() -> None:
    """The rest of it is not looked at."""
    assert chosen(asking("x," * 10_000 + "gzip"), BOTH) == PLAIN


@pytest.mark.parametrize(
    ("value", "codings"),
    [("", ()), ("identity", ()), ("gzip", (GZIP,)), (" X-GZIP ", (GZIP,)), ("deflate,,gzip", ("deflate", GZIP))],
)
def test_H134_codings_of_a_body_stand_in_the_order_of_their_doing(value: str, codings: tuple[str, ...]) -> None:
    """RFC 9110, 8.4."""
    assert packed_with(asking(value, name="content-encoding")) == codings
    assert packed_with(RequestHead("POST", "/")) == ()


@pytest.mark.parametrize(
    ("value", "why"),
    [("br", "'br' is not supported; known are .*gzip, deflate"), ("gzip, aes128gcm", "'aes128gcm'"),
     ("gzip;q=1", "'gzip;q=1'"), (", ".join(["gzip"] * 4), "4 content codings, which exceeds the limit of 3")],
)  # fmt: skip
def test_H135_an_unknown_coding_is_refused(value: str, why: str) -> None:
    """So are more of them than anybody needs."""
    with pytest.raises(UnsupportedMediaType, match=why):
        packed_with(asking(value, name="content-encoding"))
