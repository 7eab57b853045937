"""`invoker.protocols.web.service.http`: requests whose Accept lists nothing that the function's value can be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from invoker import Message, function
from tests.transports.served import Served

JSON = "application/json"
GIF = "image/gif"
EVENTS = "application/cloudevents+json"
PNG = b"\x89PNG"

ran: list[str] = []


def picture(x: int) -> Message[bytes]:
    ran.append("picture")
    return Message(PNG, media_type="image/png")


async def loaded(x: int) -> Message[bytes]:
    ran.append("loaded")
    return Message(PNG, media_type="image/png")


def pictures(x: int) -> Iterator[Message[bytes]]:
    ran.append("pictures")
    yield Message(b"GIF", media_type=GIF)
    yield Message(PNG, media_type="image/png")


@function(output_types="image/png")
def declared(x: int) -> Message[bytes]:
    ran.append("declared")
    return Message(PNG, media_type="image/png")


def octets(x: int) -> bytes:
    ran.append("octets")
    return PNG


async def flow(x: int) -> AsyncIterator[bytes]:
    ran.append("flow")
    yield PNG


def row(x: int) -> dict[str, int]:
    ran.append("row")
    return {"x": x}


def untold(x: int) -> Any:
    ran.append("untold")
    return PNG


@pytest.mark.parametrize(
    ("called", "accept", "offered"),
    [
        (declared, GIF, "image/png"),
        (declared, f"{EVENTS}, {GIF}", "image/png"),
        (declared, f"multipart/mixed, {GIF}", "image/png"),
        (octets, GIF, "application/octet-stream"),
        (octets, JSON, "application/octet-stream"),
        (flow, f"multipart/mixed, {JSON}", "application/octet-stream"),
        (row, "application/octet-stream", JSON),
        (untold, GIF, "application/json, text/plain, application/octet-stream"),
    ],
)
async def test_H220_a_value_that_cannot_be_accepted_is_told_before_the_function_runs(
    called: Any, accept: str, offered: str
) -> None:
    """By what it declares, or by the class of its value; the text has what is offered and what was accepted."""
    ran.clear()
    async with Served.at(called) as served:
        response = await served.post(b"1", content_type=JSON, accept=accept)
    assert response.status_code == 406
    assert not ran
    assert "Invoker: Not Acceptable: " in response.text
    assert f"value can be {offered}" in response.text
    assert accept.rpartition(", ")[2] in response.text


@pytest.mark.parametrize("called", [picture, loaded, pictures])
@pytest.mark.parametrize(
    "accept", [JSON, "text/plain", f"{JSON}, {EVENTS};q=0.5", f"{EVENTS}, {JSON}", f"multipart/mixed, {JSON}"]
)
async def test_H221_a_type_that_only_the_function_knows_is_406_when_it_is_known(called: Any, accept: str) -> None:
    """The text says that the function has run."""
    async with Served.at(called) as served:
        response = await served.post(b"1", content_type=JSON, accept=accept)
    assert response.status_code == 406
    given = "image/gif" if called is pictures else "image/png"
    assert f"Not Acceptable: the function has run and gave {given}, and Accept lists '{accept}'" in response.text
    assert "octet-stream" not in response.text  # which only we have added to what is accepted (H-208)


async def test_H221_behind_the_first_item_it_is_an_item() -> None:
    """A problem with the status that the response would have had."""
    async with Served.at(pictures) as served:
        response = await served.post(b"1", content_type=JSON, accept=f"multipart/mixed, {GIF}")
    assert response.status_code == 200
    assert b"Content-Type: image/gif" in response.content
    assert b'"title":"Not Acceptable","status":406' in response.content


@pytest.mark.parametrize("stream", ["text/event-stream", "application/x-ndjson"])
@pytest.mark.parametrize("called", [picture, declared, octets, row])
async def test_H220_streams_of_json_take_every_value(called: Any, stream: str) -> None:
    """What is no JSON is packed with its media type, so nothing is refused."""
    async with Served.at(called) as served:
        response = await served.post(b"1", content_type=JSON, accept=stream)
    assert response.status_code == 200
    assert b"error" not in response.content


@pytest.mark.parametrize("accept", ["image/*", "*/*", "image/png;q=0.1", f"{EVENTS}, image/png", "text/plain, */*;q=0"])
async def test_H220_what_can_be_accepted_is_not_refused(accept: str) -> None:
    """Bytes are text where text is asked for by its name."""
    called = octets if "text" in accept else declared
    async with Served.at(called) as served:
        assert (await served.post(b"1", content_type=JSON, accept=accept)).status_code == 200


async def test_R147_a_value_that_no_accepted_codec_takes_stays_the_functions_failure() -> None:
    """R-099: where nothing tells its class before; and where the function names a type that its value cannot have."""

    def odd(x: int) -> Message[Any]:
        return Message(object(), media_type=JSON)

    async with Served.at(untold, odd) as served, served.client() as client:
        for path in ("/untold", "/odd"):
            response = await client.post(path, content=b"1", headers={"Accept": JSON, "Content-Type": JSON})
            assert response.status_code == 500
