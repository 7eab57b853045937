"""`invoker.protocols.web.events`: functions take events and give them, over each carrier of HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from invoker.context import Context
from invoker.message import Message
from tests.transports.served import Served

EVENT, BATCH, LINES = "application/cloudevents+json", "application/cloudevents-batch+json", "application/x-ndjson"
NEEDED = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "shop.sold"}
BINARY = {f"ce-{name}": value for name, value in NEEDED.items()}


def event(data: Any = None, **members: Any) -> dict[str, Any]:
    return NEEDED | ({"data": data} if data is not None else {}) | members


def told(order: Message[dict[str, int]], ctx: Context) -> Message[list[str]]:
    """What a function sees of an event."""
    seen = order.headers
    said = [seen.get("ce-type", ""), seen.get("ce-subject", ""), ctx.metadata.get("ce-id", ""), str(order.payload)]
    return Message(said, headers={"X-Seen": "yes"})


def pay(order: dict[str, int]) -> Message[dict[str, int]]:
    return Message(
        {"paid": order["price"]}, headers={"ce-type": "shop.paid", "ce-subject": "Grüße", "ce-source": "/pay"}
    )


def double(x: int) -> int:
    return 2 * x


def add(x: int, y: int = 100) -> int:
    return x + y


def running(xs: Iterator[int]) -> Iterator[int]:
    total = 0
    for x in xs:
        total += x
        yield total


async def double_later(x: int) -> int:
    return 2 * x


def ids(xs: Iterator[Message[int]]) -> Iterator[str]:
    for x in xs:
        yield x.headers["ce-id"]


def bad(x: int) -> Message[int]:
    return Message(x, headers={"ce-type": "a", "ce-time": "noon"})


WAYS = [(double, False), (double_later, False), (double_later, True)]


@pytest.mark.parametrize("http2", [False, True])
async def test_H140_H142_both_modes_are_the_same_to_a_function(http2: bool) -> None:
    """Its value is the data, and the attributes are headers; what a header says twice does not count."""
    async with Served.at(told) as served, served.client(http2=http2) as client:
        modes = [
            ({**BINARY, "ce-subject": "a%20%E2%82%AC", "Content-Type": "application/json"}, {"price": 3}),
            ({"Content-Type": EVENT, "ce-type": "another"}, event({"price": 3}, subject="a €")),
        ]
        for headers, body in modes:
            got = await client.post("/", json=body, headers={**headers, "Accept": "application/json"})
            assert (got.status_code, got.json()) == (200, ["shop.sold", "a €", "1", "{'price': 3}"])
            assert got.headers["x-seen"] == "yes"
            assert not [one for one in got.headers if one.startswith("ce-")]


@pytest.mark.parametrize(("function", "http2"), WAYS)
async def test_H142_data_fills_parameters_as_a_body_does(function: Any, http2: bool) -> None:
    """Again and again on one connection, with the same head."""
    async with Served.at(function) as served, served.client(http2=http2) as client:
        for x in range(3):
            got = await client.post("/", json=event(x), headers={"Content-Type": EVENT})
            assert got.json() == 2 * x
            assert (await client.post("/", json=x, headers=BINARY)).json() == 2 * x


async def test_H142_members_and_the_query_are_parameters() -> None:
    """Text, too, has its own media type."""
    async with Served.at(add) as served, served.client() as client:
        headers = {"Content-Type": EVENT}
        assert (await client.post("/", json=event({"x": 1, "y": 2}), headers=headers)).json() == 3
        assert (await client.post("/?y=5", json=event(1), headers=headers)).json() == 6
        text = event("7", datacontenttype="text/plain")
        assert (await client.post("/", json=text, headers=headers)).json() == 107


@pytest.mark.parametrize("http2", [False, True])
async def test_H141_what_is_no_event_is_400(http2: bool) -> None:
    """With the names of what is missing, as text or as a problem."""
    async with Served.at(double) as served, served.client(http2=http2) as client:
        bodies = [({"Content-Type": EVENT}, {"id": "1"}), ({"ce-specversion": "1.0", "ce-id": "1"}, 3)]
        for headers, body in bodies:
            got = await client.post("/", json=body, headers=headers)
            assert (got.status_code, got.headers["content-type"]) == (400, "text/plain; charset=utf-8")
            assert "source, type; it needs specversion, id, source, type" in got.text
            got = await client.post("/", json=body, headers={**headers, "Accept": "application/problem+json"})
            assert got.json()["code"] == "INVALID_ARGUMENT"
        wrong = event("x", datacontenttype="application/json")
        got = await client.post("/", json=wrong, headers={"Content-Type": EVENT})
        assert (got.status_code, "parameter 'x'" in got.text) == (400, True)
        wrong = event("x", datacontenttype="image/png")
        assert (await client.post("/", json=wrong, headers={"Content-Type": EVENT})).status_code == 415


async def test_H143_a_batch_is_the_items_of_an_input() -> None:
    """Of a stream, or of a function that is called for each; one value of several is refused."""
    async with Served.at(running, double, ids, add) as served, served.client() as client:
        batch = [event(x, id=f"e{x}") for x in (1, 2, 3)]
        headers = {"Content-Type": BATCH, "Accept": LINES}
        for path, lines in (
            ("/running", "1 3 6"),
            ("/double", "2 4 6"),
            ("/ids", '"e1" "e2" "e3"'),
            ("/add?y=1", "2 3 4"),
        ):
            got = await client.post(path, json=batch, headers=headers)
            assert (got.status_code, got.text.split()) == (200, lines.split()), path
        got = await client.post("/double", json=batch, headers={"Content-Type": BATCH})
        assert (got.status_code, "batch of 3 events" in got.text) == (400, True)
        assert (await client.post("/double", json=batch[:1], headers={"Content-Type": BATCH})).json() == 2
        assert (await client.post("/running", json=[], headers=headers)).text == ""
        got = await client.post("/running", json=[*batch, event(1, id="")], headers=headers)
        assert (got.status_code, "event 3 of the batch" in got.text) == (400, True)


@pytest.mark.parametrize("http2", [False, True])
async def test_H144_a_message_with_a_type_leaves_as_an_event(http2: bool) -> None:
    """In binary mode, whatever the request was."""
    async with Served.at(pay) as served, served.client(http2=http2) as client:
        for headers, body in (({"Content-Type": EVENT}, event({"price": 3})), ({}, {"price": 3})):
            got = await client.post("/", json=body, headers=headers)
            told = {name: value for name, value in got.headers.items() if name.startswith("ce-")}
            assert told.pop("ce-id") != "1"
            assert told.pop("ce-time").endswith("Z")
            assert told == {
                "ce-specversion": "1.0", "ce-source": "/pay", "ce-type": "shop.paid", "ce-subject": "Gr%C3%BC%C3%9Fe",
            }  # fmt: skip
            assert (got.headers["content-type"], got.json()) == ("application/json", {"paid": 3})


@pytest.mark.parametrize(("function", "http2"), WAYS)
async def test_H145_any_value_leaves_as_an_event_for_a_client_that_wants_one(function: Any, http2: bool) -> None:
    """In structured mode, with a type and a source that name the function."""
    async with Served.at(function) as served, served.client(http2=http2) as client:
        for accept in (EVENT, f"{EVENT}, application/json;q=0.5"):
            got = await client.post("/", json=4, headers={"Accept": accept})
            found = got.json()
            assert got.headers["content-type"] == EVENT
            assert found.pop("id")
            assert found.pop("time")
            name = function.__name__
            assert found == {
                "specversion": "1.0", "source": f"/{name}", "type": f"invoker.{name}",
                "datacontenttype": "application/json", "data": 8,
            }  # fmt: skip
        got = await client.post("/", json=4, headers={"Accept": f"application/json, {EVENT};q=0.5"})
        assert (got.headers["content-type"], got.json()) == ("application/json", 8)


async def test_H145_an_event_of_a_function_keeps_its_attributes_in_structured_mode() -> None:
    """None of them is a header then."""
    async with Served.at(pay) as served, served.client() as client:
        got = await client.post("/", json={"price": 3}, headers={"Accept": EVENT})
        found = got.json()
        assert (found["type"], found["subject"], found["source"], found["data"]) == (
            "shop.paid",
            "Grüße",
            "/pay",
            {"paid": 3},
        )
        assert not [one for one in got.headers if one.startswith("ce-")]


@pytest.mark.parametrize("http2", [False, True])
@pytest.mark.parametrize("stream", [LINES, "text/event-stream", "multipart/mixed"])
async def test_H145_items_of_a_stream_are_events_if_the_client_names_them(stream: str, http2: bool) -> None:
    """Each by itself."""
    async with Served.at(running) as served, served.client(http2=http2) as client:
        headers = {"Content-Type": LINES, "Accept": f"{stream}, {EVENT}"}
        got = await client.post("/", content=b"1\n2\n", headers=headers)
        lines = [line.removeprefix("data: ") for line in got.text.splitlines() if "specversion" in line]
        found = [json.loads(line) for line in lines]
        assert [(one["data"], one["type"]) for one in found] == [(1, "invoker.running"), (3, "invoker.running")]
        assert len({one["id"] for one in found}) == 2
        assert ("Content-Type: application/cloudevents+json" in got.text) == (stream == "multipart/mixed")


async def test_H144_a_message_that_is_no_event_is_500() -> None:
    """It is the function's fault, and the text says what is wrong."""
    async with Served.at(bad) as served, served.client() as client:
        got = await client.post("/", json=1)
        assert (got.status_code, "'time' of the event is 'noon'" in got.text) == (500, True)


def given_nothing(order: dict[str, int] | None = None, *, ctx: Context) -> str:
    return f"{order} {ctx.metadata.get('ce-id', '')}"


def payload(data: Message[bytes]) -> str:
    return f"{data.payload!r} {data.media_type}"


def shout(text: str) -> str:
    return text.upper()


@pytest.mark.parametrize(
    ("function", "body", "answer"),
    [
        (double, b"4", "8"),
        (shout, b'"a"', "A"),
        (add, b'{"x": 1, "y": 2}', "3"),
        (given_nothing, b'{"a": 1}', "{'a': 1} 1"),
        (given_nothing, b"", "None 1"),
        (payload, b"[1]", "b'[1]' application/json"),
    ],
)
async def test_H140_an_event_without_a_content_type_holds_json(function: Any, body: bytes, answer: str) -> None:
    """As one without a datacontenttype does in structured mode; one without data gives no value."""
    async with Served.at(function) as served, served.client() as client:
        for content in (body, _pieces(body)):
            request = client.build_request("POST", "/", content=content, headers={**BINARY, "Accept": "text/plain"})
            request.headers.pop("Content-Type", None)
            response = await client.send(request)
            assert (response.status_code, response.text) == (200, answer)


async def _pieces(body: bytes) -> Any:
    """A body of no announced length."""
    if body:
        yield body
