"""`invoker.protocols.graphpipe.service.http`: GraphPipe over HTTP, through a real transport."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, NamedTuple

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import Context
from invoker.tensors import Code, http_status, read_metadata_response
from invoker.transports.http.exchange import HttpSettings
from tests.protocols.graphpipe.asking import METADATA_REQUEST, ask, code_of, values
from tests.tensors.samples import fixture
from tests.transports.models import serving_models
from tests.transports.served import until

OCTETS = "application/octet-stream"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
Rows = Annotated[NDArray[np.float32], ("batch", 2)]


def double(x: Rows) -> Rows:
    """Twice of it."""
    return x * 2


def fails(x: NDArray[Any]) -> NDArray[Any]:
    raise ValueError("no such luck")


class Parted(NamedTuple):
    low: Iterator[NDArray[np.int64]]
    high: Iterator[NDArray[np.int64]]


def parted(x: NDArray[np.int64], ctx: Context, at: int = 2) -> Parted:
    """Those below and those from ``at`` on."""
    key = ctx.config(dict) or {}
    bound = key.get("at", at)
    return Parted(iter([x[x < bound]]), iter([x[x >= bound]] if ctx.wants("high") else []))


async def post(client: httpx.AsyncClient, content: Any, path: str = "/graphpipe", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await client.post(path, content=content, headers=named)


@pytest.mark.parametrize("media_type", [None, OCTETS, "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_G001_G002_GT03_any_content_type_is_taken(media_type: str | None) -> None:
    """The response is octets of a known length."""
    async with serving_models(double) as served, served.client() as client:
        got = await post(client, fixture("infer_request"), **({"content_type": media_type} if media_type else {}))
    assert (got.status_code, got.headers["content-type"]) == (200, OCTETS)
    assert got.headers["content-length"] == str(len(got.content))
    assert values(got.content) == [[[2.0, 4.0]]]
    assert "x-graphpipe-error" not in got.headers


async def test_G003_GT04_chunked_bodies_and_none() -> None:
    """An empty body is E1."""

    async def chunks() -> AsyncIterator[bytes]:
        for byte in fixture("infer_request"):
            yield bytes([byte])

    async with serving_models(double) as served, served.client() as client:
        assert values((await post(client, chunks())).content) == [[[2.0, 4.0]]]
        empty = await client.post("/graphpipe")
    assert (empty.status_code, code_of(empty.content)) == (400, Code.MALFORMED)


async def test_G004_GT05_a_long_body_is_refused_unread() -> None:
    """By what it announces; the connection ends."""
    async with serving_models(double, limit_bytes=100) as served, served.wire() as wire:
        await wire.send("POST /graphpipe HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000000\r\n\r\n")
        status, headers, body = await wire.answer()
    assert (status, headers["connection"], headers["x-graphpipe-error"]) == (413, "close", "13")
    assert code_of(body) is Code.TOO_LARGE


async def test_G004_GT06_a_body_that_grows_too_long() -> None:
    """As soon as it shows, though its end never comes; the connection ends."""
    async with serving_models(double, limit_bytes=100) as served, served.wire() as wire:
        await wire.send("POST /graphpipe HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            await wire.send(b"32\r\n", bytes(50), b"\r\n")
        status, headers, body = await wire.answer()
    assert (status, headers["connection"], headers["x-graphpipe-error"]) == (413, "close", "13")
    assert code_of(body) is Code.TOO_LARGE


async def test_G004_zeros_before_a_length_do_not_make_it_long() -> None:
    """It is a number."""
    buffer = fixture("infer_request")
    async with serving_models(double) as served, served.wire() as wire:
        await wire.send(
            f"POST /graphpipe HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(buffer):020}\r\n\r\n", buffer
        )
        assert (await wire.answer())[0] == 200


async def test_G005_expect_is_answered() -> None:
    """100 for what fits; 413, and nothing before it, for what is too large."""
    buffer = fixture("infer_request")
    head = "POST /graphpipe HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n"
    async with serving_models(double, limit_bytes=1000) as served:
        async with served.wire() as wire:
            await wire.send(head.format(len(buffer)))
            assert (await wire.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
            await wire.send(buffer)
            assert (await wire.answer())[0] == 200
        async with served.wire() as wire:
            await wire.send(head.format(2000))
            assert (await wire.answer())[0] == 413


async def test_G006_encoded_bodies_are_415() -> None:
    """Identity is none."""
    async with serving_models(double) as served, served.client() as client:
        for encoding in ("gzip", "x-gzip", "deflate", "br", "identity, gzip", "nonsense"):
            refused = await post(client, fixture("infer_request"), content_encoding=encoding)
            assert (refused.status_code, refused.headers["content-type"]) == (415, "text/plain; charset=utf-8")
        assert (await post(client, fixture("infer_request"), content_encoding="identity")).status_code == 200


async def test_G007_G100_GT07_get_is_metadata_in_json() -> None:
    """With the keys of the Go implementation; the same as the buffer says."""
    async with serving_models(double) as served, served.client() as client:
        got = await client.get("/graphpipe")
        binary = read_metadata_response((await post(client, METADATA_REQUEST)).content)
    assert (got.status_code, got.headers["content-type"]) == (200, "application/json")
    listed = got.json()
    assert listed["Name"] == binary.name == "double"
    assert listed["Server"] == binary.server
    assert listed["Inputs"] == [
        {"Name": "x", "Description": "[batch, 2]", "Shape": [-1, 2], "Type": 10, "TypeName": "Float32"}
    ]
    assert [one["Name"] for one in listed["Outputs"]] == [one.name for one in binary.outputs]


async def test_G007_a_browser_gets_a_page() -> None:
    """Who accepts neither gets 406."""
    async with serving_models(double) as served, served.client() as client:
        got = await client.get("/graphpipe", headers={"Accept": BROWSER})
        neither = await client.get("/graphpipe", headers={"Accept": "image/png"})
    assert got.headers["content-type"] == "text/html; charset=utf-8"
    assert "<h1>double" in got.text
    assert neither.status_code == 406


async def test_G008_GT08_other_methods_are_405() -> None:
    """HEAD is GET without a body."""
    async with serving_models(double) as served, served.client() as client:
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
            got = await client.request(method, "/graphpipe", content=fixture("infer_request"))
            assert (got.status_code, got.headers["allow"]) == (405, "GET, HEAD, POST")
        got, head = await client.get("/graphpipe"), await client.head("/graphpipe")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(got.content))


async def test_G009_models_have_paths_of_their_own() -> None:
    """The first one is at the path above; G-107: others reach their own protocol."""
    async with serving_models(double, parted) as served, served.client() as client:
        assert values((await post(client, fixture("infer_request"))).content) == [[[2.0, 4.0]]]
        assert values((await post(client, ask([1, 2, 3]), "/graphpipe/parted")).content) == [[1], [2, 3]]
        unknown = await post(client, b"", "/graphpipe/nope")
        assert (unknown.status_code, unknown.headers["content-type"]) == (404, "text/plain; charset=utf-8")
        assert "/graphpipe/parted" in unknown.text
        other = await post(client, b"[[1, 2]]", "/", invoker_function="double", content_type="application/json")
        assert (other.status_code, other.json()) == (200, [[2.0, 4.0]])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/graphpipe", "double"),
        ("/graphpipe/", "double"),
        ("/graphpipe/?q=/parted", "double"),
        ("/graphpipe/parted", "parted"),
        ("/graphpipe/parted/", "parted"),
        ("/graph%70ipe/part%65d", "parted"),
        ("/graphpipe/part%2565d", None),
        ("/graphpipe/Parted", None),
        ("/graphpipe/parted/x", None),
    ],
)
async def test_G009_a_path_is_decoded_once_and_may_end_with_a_slash(path: str, name: str | None) -> None:
    """To all of GET, HEAD and POST; what is left of it has to be the name."""
    async with serving_models(double, parted) as served, served.client() as client:
        got, head, posted = await client.get(path), await client.head(path), await post(client, METADATA_REQUEST, path)
    if name is None:
        assert {got.status_code, head.status_code, posted.status_code} == {404}
        return
    assert (got.json()["Name"], head.status_code, read_metadata_response(posted.content).name) == (name, 200, name)


async def test_G009_a_model_may_be_the_root() -> None:
    """`--http-root graphpipe`."""
    async with serving_models(double, is_root=True) as served, served.client() as client:
        assert values((await post(client, fixture("infer_request"), "/")).content) == [[[2.0, 4.0]]]
        assert (await client.get("/")).json()["Name"] == "double"
        assert (await client.get("/elsewhere")).status_code == 404
        assert (await client.get("/healthz")).status_code == 200


async def test_G010_G011_control_tells_readiness_only() -> None:
    """There is no shutdown."""
    async with serving_models(double) as served, served.client() as client:
        for question in ("is_ready", "is_alive"):
            got = await client.get(f"/control/{question}")
            assert (got.status_code, got.text) == (200, "ok\n")
        assert (await client.post("/control/is_ready")).status_code == 405
        assert (await client.get("/control/shutdown")).status_code == 404
    async with serving_models(double, is_well=False) as served, served.client() as client:
        assert (await client.get("/control/is_ready")).status_code == 503
        assert (await client.get("/control/is_alive")).status_code == 200


async def test_G012_G101_GT10_a_bad_request_does_not_harm_the_next() -> None:
    """On the same connection."""
    buffer = fixture("infer_request")
    head = f"POST /graphpipe HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(buffer)}\r\n\r\n"
    async with serving_models(double) as served, served.wire() as wire:
        await wire.send(head, b"\xff" * len(buffer))
        status, headers, body = await wire.answer()
        assert (status, headers["x-graphpipe-error"], code_of(body)) == (400, "1", Code.MALFORMED)
        await wire.send(head, buffer)
        status, _, body = await wire.answer()
        assert (status, values(body)) == (200, [[[2.0, 4.0]]])


async def test_G013_G075_GT43_a_client_that_leaves_cancels() -> None:
    """The function's cleanup runs."""
    started, left = asyncio.Event(), asyncio.Event()

    async def slow(x: NDArray[Any]) -> NDArray[Any]:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return x

    buffer = ask([1])
    async with serving_models(slow) as served, served.wire() as wire:
        await wire.send(f"POST /graphpipe HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(buffer)}\r\n\r\n", buffer)
        await started.wait()
        wire.writer.transport.abort()
        async with asyncio.timeout(1):
            await left.wait()
        await until(lambda: not served.driver.engine.running)


async def test_G014_GT53_a_slow_body_is_408() -> None:
    """What comes is too little for the time it takes, though it never stops; nothing is invoked."""
    calls: list[int] = []

    def counted(x: NDArray[Any]) -> NDArray[Any]:
        calls.append(1)
        return x

    limits = HttpSettings(body_s=0.1, body_bytes_per_s=1e6)
    head = "POST /graphpipe HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
    async with serving_models(counted, http=limits) as served, served.wire() as wire:
        await wire.send(head, fixture("infer_request"))
        answer = asyncio.ensure_future(wire.answer())
        while not (await asyncio.wait([answer], timeout=0.02))[0]:
            await wire.send(b"x")
        status, headers, _ = await answer
        assert (status, headers["connection"]) == (408, "close")
    assert calls == []


async def test_G031_GT45_config_reaches_the_function() -> None:
    """Bad JSON is E17."""
    async with serving_models(parted) as served, served.client() as client:
        got = await post(client, ask([1, 2, 3], config=b'{"at": 3}'))
        bad = await post(client, ask([1], config=b"{"))
    assert values(got.content) == [[1, 2], [3]]
    assert (bad.status_code, code_of(bad.content)) == (400, Code.CONFIG)


async def test_G057_G060_only_wanted_outputs_are_given() -> None:
    """And the function may know."""
    async with serving_models(parted) as served, served.client() as client:
        assert values((await post(client, ask([1, 2, 3], output_names=("high",)))).content) == [[2, 3]]
        assert values((await post(client, ask([1, 2, 3], output_names=("low",)))).content) == [[1]]
        named = ask([1, 2, 3], 3, input_names=("x", "at"), output_names=("output1", "low"))
        assert values((await post(client, named)).content) == [[3], [1, 2]]


async def test_G065_GT40_a_function_that_raises_is_E14() -> None:
    """Without its insides."""
    async with serving_models(fails) as served, served.client() as client:
        got = await post(client, ask([1]))
    assert (got.status_code, code_of(got.content)) == (500, Code.FUNCTION_FAILED)
    assert b"no such luck" in got.content
    assert b"Traceback" not in got.content
    assert b".py" not in got.content


async def test_G066_outputs_that_were_not_promised_are_E18() -> None:
    """Type and shape."""

    def wrong(x: NDArray[Any]) -> NDArray[np.int8]:
        return np.float32([1])  # type: ignore[return-value]

    async with serving_models(wrong) as served, served.client() as client:
        got = await post(client, ask([1]))
    assert (got.status_code, code_of(got.content)) == (500, Code.BAD_OUTPUT)


async def test_G079_GT44_timeout_and_overload() -> None:
    """E15 with 504, E16 with 503 and when to come again."""
    go = threading.Event()

    def held(x: NDArray[Any]) -> NDArray[Any]:
        go.wait(10)
        return x

    async with serving_models(held, max_invocations=1, timeout_s=0.3) as served, served.client() as client:
        first = asyncio.ensure_future(post(client, ask([1])))
        await until(lambda: bool(served.driver.engine.running))
        second = await post(client, ask([1]))
        late = await first
        go.set()
    assert (second.status_code, second.headers["retry-after"]) == (503, "1")
    assert code_of(second.content) is Code.OVERLOADED
    assert (late.status_code, code_of(late.content)) == (504, Code.TIMEOUT)


async def test_G081_GT54_errors_may_have_status_200() -> None:
    """For clients that read the body only then."""
    async with serving_models(fails, plain_status=True) as served, served.client() as client:
        got = await post(client, ask([1]))
    assert (got.status_code, got.headers["x-graphpipe-error"]) == (200, "14")
    assert code_of(got.content) is Code.FUNCTION_FAILED


@pytest.mark.parametrize("code", list(Code))
def test_G081_statuses(code: Code) -> None:
    """By the kind of error."""
    expected = {13: 413, 14: 500, 15: 504, 16: 503, 18: 500, 19: 500, 20: 503}
    assert http_status(code) == expected.get(code, 400)


async def test_G104_GT59_while_draining_requests_are_refused() -> None:
    """E20."""
    async with serving_models(double) as served, served.client() as client:
        served.driver.engine.is_draining = True
        got = await post(client, fixture("infer_request"))
        metadata = await post(client, METADATA_REQUEST)
    assert (got.status_code, code_of(got.content), got.headers["connection"]) == (503, Code.NOT_READY, "close")
    assert metadata.status_code == 200  # G-092


async def test_G108_headers_reach_the_context() -> None:
    """As of any conversation."""

    def told(x: NDArray[Any], ctx: Context) -> str:
        return ctx.metadata["x-request-id"]

    async with serving_models(told) as served, served.client() as client:
        assert values((await post(client, ask([1]), x_request_id="r7")).content) == [b"r7"]


@pytest.mark.parametrize(("accept", "status"), [("text/html", 406), ("*/*", 200), (OCTETS, 200), ("text/*", 406)])
async def test_G109_GT56_accept(accept: str, status: int) -> None:
    """A buffer is octets."""
    async with serving_models(double) as served, served.client() as client:
        assert (await post(client, fixture("infer_request"), accept=accept)).status_code == status


async def test_G110_GT57_http_1_0_gets_the_body_and_the_end() -> None:
    """Without keep-alive."""
    buffer = fixture("infer_request")
    async with serving_models(double) as served, served.wire() as wire:
        await wire.send(f"POST /graphpipe HTTP/1.0\r\nContent-Length: {len(buffer)}\r\n\r\n", buffer)
        answer = await wire.ended()
    assert values(answer.partition(b"\r\n\r\n")[2]) == [[[2.0, 4.0]]]


async def test_G102_large_bodies_come_and_go_in_parts() -> None:
    """Nothing of them is lost."""
    rows = np.arange(3_000_000, dtype="f4").reshape(-1, 2)
    async with serving_models(double) as served, served.client() as client:
        got = await post(client, ask(rows))
    assert np.array_equal(np.float32(values(got.content)[0]), rows * 2)
