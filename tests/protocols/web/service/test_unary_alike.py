"""A call without a session cannot be told from one with a session, whatever is sent and whatever the function does."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from invoker.execution.driver import Driver
from tests.protocols.web.service.alike import as_async, two
from tests.protocols.web.service.alike_functions import ASYNC, ERRORS, FUNCTIONS, SYNC

pytestmark = pytest.mark.timeout(60)

EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
BODIES = [
    *(b"", b"3", b"-1", b"13", b"400", b"90000", b"2.5", b"1e999", b"NaN", b"true", b"null", b"[3,4]", b"[]", b" 3 "),
    *(b'""', b'"a"', b'"red"', b'"201"', b'"204"', b'"304"', b'"99"', b'"text/html"', b'"image/png;q=1"', b'"*/*"'),
    *(b'"2020-01-01T00:00:00Z"', b'"\\ud800"', b'"out"', b'"in"', b"hello", b"\xff", b"{", b"3 3"),
    *(b'{"x":3}', b'{"x":1,"y":2}', b'{"a":1,"b":2}', b'{"a":1}', b'{"a":"q","z":[1]}', b'{"nope":1}'),
    *(b"a=1&b=2", b"x=3", b"a=1&a=2", json.dumps({**EVENT, "data": 3}).encode()),
    *(json.dumps([{**EVENT, "data": one} for one in range(count)]).encode() for count in (1, 2)),
]
TYPES = [
    *("application/json", "application/json", "application/json", "text/plain", "", "application/octet-stream"),
    *("application/x-www-form-urlencoded", "application/cloudevents+json", "application/cloudevents-batch+json"),
    *("application/x-doom", "application/json; charset=latin-1", "garbage", "application/msgpack"),
]
ACCEPTS = [
    *("", "", "", "*/*", "application/json", "text/plain", "image/png", "application/octet-stream", "text/zglorbf"),
    *("application/cloudevents+json", "application/problem+json, application/json;q=0.5", "text/html"),
]
FIELDS = [
    *("", "", "X-Request-Id: abc", "Accept-Encoding: gzip", "Accept-Encoding: identity;q=0, gzip", "X-Given: yes"),
    *("Connection: close", "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    "ce-specversion: 1.0\r\nce-id: 1\r\nce-source: /s\r\nce-type: t",
]
QUERIES = ["", "", "", "?x=3", "?a=1&b=2", "?b=7", "?x=", "?nope=1", "?a=1&a=2"]
METHODS = ["POST"] * 10 + ["GET", "HEAD", "PUT"]


class Asked(NamedTuple):
    """A request, and whether its body waits for 100."""

    parts: list[bytes]
    waits: bool = False


def asked(chance: random.Random, path: str, body: bytes) -> Asked:
    """A request of the class: any method, types, query and headers, and a body that comes in any way."""
    method, content_type, accept = chance.choice(METHODS), chance.choice(TYPES), chance.choice(ACCEPTS)
    fields = ["Host: localhost", chance.choice(FIELDS)]
    if "gzip" in fields[1] and "events" in accept:
        accept = ""  # the id of an event, which differs, could not be seen
    fields += [f"{name}: {value}" for name, value in (("Content-Type", content_type), ("Accept", accept)) if value]
    body = b"" if method in ("GET", "HEAD") else body
    how = chance.choice(["whole", "apart", "chunked", "bytewise", "waits"])
    if how == "chunked":
        fields.append("Transfer-Encoding: chunked")
    else:
        fields.append(f"Content-Length: {len(body)}")
    is_waiting = how == "waits" and bool(body)
    if is_waiting:
        fields.append("Expect: 100-continue")
    named = "".join(f"{one}\r\n" for one in fields if one)
    head = f"{method} /{path}{chance.choice(QUERIES)} HTTP/1.1\r\n{named}\r\n".encode()
    middle = len(body) // 2
    chunks = [b"%x\r\n%b\r\n" % (len(one), one) for one in (body[:middle], body[middle:]) if one]
    ways = {
        "whole": [head + body],
        "apart": [head, body],
        "chunked": [head, *chunks, b"0\r\n\r\n"],
        "bytewise": [head, *(body[at : at + 1] for at in range(len(body)))],
        "waits": [head, body],
    }
    return Asked([one for one in ways[how] if one], is_waiting)


def plain(path: str, body: bytes) -> Asked:
    head = f"POST /{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return Asked([f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body])


def requests(names: Sequence[str], seed: int) -> Iterator[Asked]:
    """Each function with each body, as most clients send it; then any mixture."""
    yield from itertools.starmap(plain, itertools.product(names, BODIES))
    yield from (plain("raises", json.dumps(one).encode()) for one in ERRORS)
    # The tasks of a server let no exit pass, those of this loop do.
    yield from (plain(names[-1], json.dumps(one).encode()) for one in ERRORS)
    yield from (plain("awaits_error", json.dumps(one).encode()) for one in ERRORS.keys() - {"exit", "interrupt"})
    chance = random.Random(seed)
    for _ in range(500):
        yield asked(chance, chance.choice(names), chance.choice(BODIES))


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize(("is_async", "leads"), [(False, True), (False, False), (True, False)])
async def test_R162_a_call_without_a_session_is_answered_and_told_of_as_one_with_a_session(
    is_async: bool, leads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes of the response, the fields of its line and of its entry, what is counted, and what is left.

    Without a leading thread the loop reads the requests for sync functions, as it does those of TLS and HTTP/2.
    """
    monkeypatch.setattr(Driver, "may_lead", leads)
    functions = [*map(as_async, FUNCTIONS), *ASYNC] if is_async else [*FUNCTIONS, *SYNC]
    names = [one.__name__ for one in functions]
    async with two(*functions) as both:
        for one in requests(names, seed=1):
            await both.same(one.parts, waits_for_100=one.waits)
            both.unary.told.clear()
            both.session.told.clear()
        both.finish()
