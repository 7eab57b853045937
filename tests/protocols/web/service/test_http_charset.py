"""Text that leaves without a charset of its author's choice: browsers are told that it is UTF-8 (H-213)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

import pytest

from invoker import Message, function
from tests.transports.served import Served

TYPES = ["text/html", "text/css", "text/tab-separated-values", "text/markdown", "text/xml", "text/calendar"]
TEXT = "<p>gr\u00fc\u00dfe"


def annotated(made: Callable[..., Any], type_: Any) -> Callable[..., Any]:
    made.__annotations__["return"] = type_
    return made


def message(media_type: str, payload: Any, type_: Any) -> Callable[..., Any]:
    def fn() -> Any:
        return Message(payload, media_type=media_type)

    return annotated(fn, type_)


def untold(media_type: str, payload: Any) -> Callable[..., Any]:
    def fn():  # type: ignore[no-untyped-def]
        return Message(payload, media_type=media_type)

    return fn


def declared(media_type: str, payload: Any, type_: Any) -> Callable[..., Any]:
    @function(output_types=media_type)
    def fn() -> Any:
        return payload

    return annotated(fn, type_)


def messages(media_type: str, payload: Any, type_: Any) -> Callable[..., Any]:
    def fn(n: int = 0) -> Iterator[Any]:
        yield Message(payload, media_type=media_type)
        yield Message(payload, media_type=media_type)

    return annotated(fn, Iterator[type_])


def awaited(media_type: str, payload: Any, type_: Any) -> Callable[..., Any]:
    @function(output_types=media_type)
    async def fn(n: int = 0) -> AsyncIterator[Any]:
        yield payload
        yield payload

    return annotated(fn, AsyncIterator[type_])


async def left(made: Callable[..., Any], accept: str = "*/*") -> tuple[str, bytes]:
    async with Served.at(made) as served, served.client() as client:
        response = await client.post("/fn", headers={"Accept": accept})
        assert response.status_code == 200, response.text
        return response.headers["content-type"].replace("; ", ";"), response.content


@pytest.mark.parametrize("media_type", TYPES)
async def test_H213_text_says_that_it_is_utf_8(media_type: str) -> None:
    """Whole and in pieces, whoever names the type; also where no annotation says that it is text."""
    wholes = [
        message(media_type, TEXT, Message[str]), message(media_type, TEXT, Message), untold(media_type, TEXT),
        declared(media_type, TEXT, str),
    ]  # fmt: skip
    for made in wholes:
        assert await left(made) == (f"{media_type};charset=utf-8", TEXT.encode())
    for made in (messages(media_type, TEXT, Message[str]), awaited(media_type, TEXT, str)):
        assert await left(made) == (f"{media_type};charset=utf-8", TEXT.encode() * 2)


@pytest.mark.parametrize("charset", ["iso-8859-1", "utf-8", "UTF-16"])
async def test_H213_a_charset_of_the_author_stays(charset: str) -> None:
    """And the bytes are in it."""
    media_type = f"text/html;charset={charset}"
    for made in (message(media_type, TEXT, Message[str]), untold(media_type, TEXT)):
        told, payload = await left(made)
        assert told == media_type
        assert payload.decode(charset) == TEXT


async def test_H213_what_is_no_text_has_no_charset() -> None:
    """Bytes are the author's business, and so are other types."""
    svg, latin = "image/svg+xml", TEXT.encode("latin-1")
    assert await left(message(svg, TEXT, Message[str])) == (svg, TEXT.encode())
    for payload in (TEXT.encode(), latin):
        assert await left(message("text/html", payload, Message[bytes])) == ("text/html", payload)
        assert await left(messages("text/html", payload, Message[bytes])) == ("text/html", payload * 2)
    assert await left(untold("text/html", latin)) == ("text/html", latin)
    assert await left(untold("text/html", b"<p>")) == ("text/html", b"<p>")
    assert (await left(message("text/html", TEXT, Message[str]), "application/x-ndjson"))[0] == "application/x-ndjson"


async def parts(made: Callable[..., Any]) -> list[str]:
    """The media types of the parts of a stream."""
    async with Served.at(made) as served, served.client() as client:
        response = await client.post("/fn", headers={"Accept": "multipart/mixed"})
    head = f"Content-Type: {response.headers['content-type']}\r\n\r\n".encode()
    read = BytesParser(policy=HTTP).parsebytes(head + response.content)
    return [one["content-type"] for one in read.iter_parts()]


@pytest.mark.parametrize("media_type", [*TYPES, "text/plain"])
async def test_H213_parts_of_a_stream_say_that_they_are_utf_8(media_type: str) -> None:
    """Whoever names the type. Bytes leave as they are."""
    told = f'{media_type}; charset="utf-8"'
    for made in (messages(media_type, TEXT, Message[str]), awaited(media_type, TEXT, str)):
        assert await parts(made) == [told] * 2
    assert await parts(untold(media_type, TEXT)) == [told]
    assert await parts(messages(media_type, TEXT.encode("latin-1"), Message[bytes])) == [media_type] * 2


async def test_H213_a_charset_of_the_author_stays_in_a_part() -> None:
    """And the bytes are in it."""
    assert (
        await parts(messages("text/html;charset=iso-8859-1", TEXT, Message[str]))
        == ['text/html; charset="iso-8859-1"'] * 2
    )


@pytest.mark.parametrize("accept", ["*/*", "*/*;q=0.8, image/webp", ""])
@pytest.mark.parametrize(
    "media_type", [*TYPES, "text/plain", "application/json", "application/problem+json", "image/png", "a/b"]
)
async def test_H208_bytes_leave_as_the_type_that_is_declared(media_type: str, accept: str) -> None:
    """They are the author's own encoding of it, whole and in pieces, and whether a codec has that type or none."""
    payload = b'["gr\xc3\xbc\xc3\x9fe"]'
    for type_ in (bytes, bytearray, memoryview):
        told, got = await left(declared(media_type, type_(payload), type_), accept)
        assert (told.removesuffix(";charset=utf-8"), got) == (media_type, payload)
    told, got = await left(awaited(media_type, payload, bytes), f"{media_type}, {accept or '*/*'}")
    assert (told.removesuffix(";charset=utf-8"), got) == (media_type, payload * 2)
