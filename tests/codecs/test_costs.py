"""`invoker.codecs.costs`: which payloads a loop decodes itself, by media type and length."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from invoker.codecs import Registry, costs
from invoker.codecs.checkpoint import CHECKPOINT
from invoker.codecs.costs import LOOP_BYTES, limit_on_loop, loop_bytes
from invoker.protocols.typed.calls import JSON, PROTO
from invoker.protocols.typed.codec import Book, FieldCodec


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test says of media types is forgotten after it."""
    monkeypatch.setattr(costs, "_OWN", dict(costs._OWN))
    loop_bytes.cache_clear()
    yield
    loop_bytes.cache_clear()


def test_what_takes_long_for_its_bytes_has_a_limit_of_its_own() -> None:
    """JSON under all its names, what may inflate, and what is made value by value."""
    Registry()
    FieldCodec(Book(list))
    plain = ["application/octet-stream", "text/plain", "application/msgpack", "application/x-npy", "nothing", "+json/x"]
    assert {loop_bytes(one) for one in plain} == {LOOP_BYTES}
    json = [
        "application/json",
        "Application/JSON ; charset=utf-8",
        "application/vnd.a+json",
        "application/geo+json;a=b",
        "",
    ]
    assert {loop_bytes(one) for one in json} == {256 * 1024}
    assert [loop_bytes(f"{one};of=f;in=1") for one in (JSON, PROTO)] == [16 * 1024, 64 * 1024]
    assert loop_bytes(CHECKPOINT) == 16 * 1024


def test_a_limit_holds_as_soon_as_it_is_said() -> None:
    """Also where the media type was asked for before; it is never beyond that of all."""
    assert loop_bytes("text/x-own;a=b") == LOOP_BYTES
    limit_on_loop(("text/x-own",), 10)
    assert loop_bytes("text/x-own;a=b") == 10
    limit_on_loop(("text/x-own",), 2 * LOOP_BYTES)
    assert loop_bytes("text/x-own") == LOOP_BYTES
