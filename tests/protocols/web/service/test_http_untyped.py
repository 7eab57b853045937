"""Requests that lack a Content-Type, or a function that lacks annotations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest

from tests.transports.served import Served

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=xyz"


@dataclass
class Point:
    x: str
    y: int = 0


class Row(TypedDict):
    x: str


TYPES = [Point, Point | None, Row, dict[str, str], list[Point], list[int], tuple[int, ...], list[dict[str, str]]]
OBJECTS = [b'{"x": "a"}', b'{"x": "a=b"}', b'{"x": "a=b&c=d"}', b' {"x": "a"}', b'\n{"x": "a=b"}']
ARRAYS = [b"[1, 2]", b'[{"x": "a=b"}]', b" [1]"]


def one(type_: Any) -> Callable[..., str]:
    def fn(p: Any) -> str:
        return repr(p)

    fn.__annotations__["p"] = type_
    return fn


def with_option(type_: Any) -> Callable[..., str]:
    def fn(p: Any, k: int = 1) -> str:
        return repr(p)

    fn.__annotations__["p"] = type_
    return fn


@pytest.mark.parametrize("kind", [one, with_option])
@pytest.mark.parametrize("type_", TYPES, ids=str)
async def test_H244_json_without_its_header_is_told_which_one_to_add(kind: Any, type_: Any) -> None:
    """Whatever curl, fetch or nobody has said of it."""
    async with Served.at(kind(type_)) as served, served.client() as client:
        for body in ARRAYS if str(type_).startswith(("list", "tuple")) else OBJECTS:
            for content_type in ("", FORM, "text/plain", "application/octet-stream"):
                headers = {"Content-Type": content_type} if content_type else {}
                response = await client.post("/", content=body, headers=headers)
                assert response.status_code == 400, (body, content_type, response.text)
                assert "application/json" in response.text, (body, content_type, response.text)


def double(x):  # type: ignore[no-untyped-def]
    return x * 2


def pair(x, y=1):  # type: ignore[no-untyped-def]
    return [x, y]


def add(x, y):  # type: ignore[no-untyped-def]
    return x + y


def part(*pairs: tuple[str, str]) -> bytes:
    made = [f'--xyz\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in pairs]
    return ("".join(made) + "--xyz--\r\n").encode()


@pytest.mark.parametrize(
    ("function", "content_type", "body", "answer"),
    [
        (double, JSON, b'{"x": 7}', "14"),
        (double, JSON, b"7", "14"),
        (double, JSON, b"[7]", "[7,7]"),
        (double, FORM, b"7", '"77"'),
        (double, FORM, b"x=7", '"77"'),
        (double, PARTS, part(("x", "7")), '"77"'),
        (pair, JSON, b'{"x": 7}', "[7,1]"),
        (pair, JSON, b'{"x": 7, "y": 2}', "[7,2]"),
        (pair, JSON, b'{"x": 7, "z": 2}', '[{"x":7,"z":2},1]'),
        (pair, JSON, b'{"y": 2}', '[{"y":2},1]'),
        (pair, JSON, b"{}", "[{},1]"),
        (pair, FORM, b"x=7&y=2", '["7","2"]'),
        (pair, FORM, b"x=7&z=2", '[{"x":"7","z":"2"},1]'),
        (pair, PARTS, part(("x", "7"), ("y", "2")), '["7","2"]'),
        (add, JSON, b'{"x": 7, "y": 2}', "9"),
    ],
)
@pytest.mark.parametrize("drops", [False, True])
async def test_H245_names_of_bare_parameters_are_names(
    function: Any, content_type: str, body: bytes, answer: str, drops: bool
) -> None:
    """If all of them are parameters', the first one among them; else it is one value, of which nothing is dropped."""
    riff = {"ignores_unknown": drops}
    async with Served.at(function, riff=riff) as served, served.client() as client:
        response = await client.post("/", content=body, headers={"Content-Type": content_type, "Accept": JSON})
        assert (response.status_code, response.text) == (200, answer)
