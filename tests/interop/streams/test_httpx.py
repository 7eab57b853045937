"""httpx by HTTP/1.1 and HTTP/2: it streams requests and answers, one after the other."""

from __future__ import annotations

import email
import email.policy
import json
from collections.abc import Iterator

import httpx
import pytest

from tests.conftest import SLOW
from tests.interop.streams.conftest import Streamed

pytestmark = pytest.mark.timeout(30)

NDJSON, SSE, MIXED = "application/x-ndjson", "text/event-stream", "multipart/mixed"
PROBLEM = "application/problem+json"


@pytest.fixture(params=["1.1", "2"])
def client(request: pytest.FixtureRequest, streamed: Streamed) -> Iterator[httpx.Client]:
    """A client of either protocol."""
    is_h2 = request.param == "2"
    with httpx.Client(base_url=streamed.url, http1=not is_h2, http2=is_h2, timeout=10 * SLOW, trust_env=False) as made:
        yield made


def test_lines_come_while_the_function_runs(client: httpx.Client, streamed: Streamed) -> None:
    """It has no end; when the client leaves, the function ends by its ``finally``."""
    with client.stream("POST", "/ticks", headers={"Accept": NDJSON}) as response:
        assert (response.status_code, response.headers["content-type"]) == (200, NDJSON)
        lines = response.iter_lines()
        assert [next(lines) for _ in range(3)] == ["1", "2", "3"]
    client.close()  # by HTTP/2, httpx keeps a response that was left until the connection ends
    assert "done" not in streamed.waited("ticks", "closed")


def test_H008_events_have_a_number_and_an_end(client: httpx.Client) -> None:
    """The whole text of a short stream."""
    response = client.get("/count", params={"to": 2}, headers={"Accept": SSE})
    assert response.headers["content-type"].partition(";")[0] == SSE
    assert response.text == "id: 1\ndata: 1\n\nid: 2\ndata: 2\n\nevent: end\ndata: {}\n\n"


def test_H008_parts_have_types_of_their_own(client: httpx.Client) -> None:
    """Python's own reader of MIME takes them."""
    parts = _parts(client.get("/count", params={"to": 3}, headers={"Accept": MIXED}))
    assert parts == [("application/json", b"1"), ("application/json", b"2"), ("application/json", b"3")]


def test_H009_a_request_streams_in(client: httpx.Client, streamed: Streamed) -> None:
    """The function has each line before the next one is sent."""

    def lines() -> Iterator[bytes]:
        for number in range(1, 4):
            yield b"%d\n" % number
            streamed.waited("added", str(number))

    headers = {"Content-Type": NDJSON, "Accept": NDJSON}
    response = client.post("/total", content=lines(), headers=headers)
    assert (response.status_code, response.text) == (200, "6\n")
    assert streamed.notes("committed") == ["6"]


@pytest.mark.parametrize("function", ["total", "sync_total", "pieces"])
def test_H015_an_upload_that_breaks_off_is_not_committed(
    client: httpx.Client, streamed: Streamed, function: str
) -> None:
    """Whatever was read of it, its end has not come."""

    def lines() -> Iterator[bytes]:
        yield b"1\n"
        streamed.waited("added", "2" if function == "pieces" else "1")
        raise RuntimeError("the disk is gone")

    media_type = "application/octet-stream" if function == "pieces" else NDJSON
    with pytest.raises(RuntimeError):
        client.post(f"/{function}", content=lines(), headers={"Content-Type": media_type, "Accept": NDJSON})
    client.close()
    assert "done" not in streamed.waited(function, "closed")
    assert streamed.notes("committed") == []


def test_H012_an_error_is_the_last_line(client: httpx.Client) -> None:
    """Behind what the function gave before; the body itself ends well."""
    response = client.get("/failing", headers={"Accept": NDJSON})
    *values, last = response.text.splitlines()
    assert (response.status_code, values) == (200, ["1", "2"])
    assert "the function has failed" in json.loads(last)["error"]["detail"]


def test_H012_an_error_is_the_last_event(client: httpx.Client) -> None:
    """An event of its own name, and no ``end``."""
    *values, last, rest = client.get("/failing", headers={"Accept": SSE}).text.split("\n\n")
    assert (values, rest) == (["id: 1\ndata: 1", "id: 2\ndata: 2"], "")
    head, _, data = last.partition("data: ")
    assert "event: error\n" in head
    assert json.loads(data)["status"] == 500


def test_H012_an_error_is_the_last_part(client: httpx.Client) -> None:
    """Of the type that errors have."""
    parts = _parts(client.get("/failing", headers={"Accept": MIXED}))
    assert [media_type for media_type, _ in parts] == ["application/json", "application/json", PROBLEM]
    assert json.loads(parts[-1][1])["status"] == 500


def _parts(response: httpx.Response) -> list[tuple[str, bytes]]:
    """The types and payloads of a multipart answer."""
    assert response.status_code == 200
    head = f"Content-Type: {response.headers['content-type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + response.content, policy=email.policy.HTTP)
    assert message.is_multipart()
    assert not message.defects
    return [(part.get_content_type(), part.get_payload(decode=True)) for part in message.iter_parts()]  # type: ignore[union-attr,misc]  # what the policy gives
