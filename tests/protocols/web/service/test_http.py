"""`invoker.protocols.web.service.http`: requests through a transport, with the real machinery behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from invoker import Context, Message
from invoker.errors import Status, StatusError
from tests.transports.served import Served

JSON = "application/json"
TEXT = "text/plain"
UTF8 = "text/plain; charset=utf-8"
OCTETS = "application/octet-stream"


def square(x: int) -> int:
    return x * x


async def asquare(x: int) -> int:
    return x * x


async def test_R141_post_to_the_root_invokes() -> None:
    """Also with a query string."""
    async with Served.at(square) as served, served.client() as client:
        response = await client.post("/?a=1&b=%20", content=b"7", headers={"content-type": JSON, "accept": TEXT})
    assert (response.status_code, response.headers["content-type"], response.content) == (200, UTF8, b"49")


async def test_R142_other_requests_do_not_call_the_function() -> None:
    """405 with Allow for another method, 404 for another path."""
    calls: list[bytes] = []

    async def noted(x: bytes) -> bytes:
        calls.append(x)
        return x

    async with Served.at(noted) as served, served.client() as client:
        for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
            response = await client.request(method, "/", content=b"x")
            assert (response.status_code, response.headers["allow"]) == (405, "POST")
        assert (await client.post("/nope", content=b"x")).status_code == 404
        assert (await client.post("/", content=b"x")).status_code == 200
    assert len(calls) == 1


async def test_R143_without_types_bytes_go_in_and_out() -> None:
    """Octet-stream in; out whatever the value is best carried by."""

    async def echo(x: bytes) -> bytes:
        return x

    async with Served.at(echo) as served:
        response = await served.post(b"\x00\xff", accept="*/*")
    assert (response.status_code, response.headers["content-type"], response.content) == (200, OCTETS, b"\x00\xff")


async def test_R144_R145_R146_R147_bad_requests_have_their_statuses() -> None:
    """415 without a decoder, 406 without an acceptable type, 400 for what cannot be decoded, 500 for what raises."""
    async with Served.at(square) as served:
        unsupported = await served.post(b"1", content_type="application/x-doom")
        unacceptable = await served.post(b"1", content_type=JSON, accept="text/zglorbf")
        undecodable = await served.post(b"{", content_type=JSON)
    assert (unsupported.status_code, unacceptable.status_code, undecodable.status_code) == (415, 406, 400)
    assert unsupported.text.startswith("Invoker: Unsupported Media Type")
    assert unacceptable.text.startswith("Invoker: Not Acceptable")
    assert undecodable.text.startswith("Invoker: Bad Input Signal")


async def test_R146_the_function_does_not_run_when_nothing_is_acceptable() -> None:
    """406 comes before the call."""
    calls: list[str] = []

    async def noted(xs: AsyncIterator[bytes]) -> AsyncIterator[str]:
        calls.append("called")
        yield "x"

    async with Served.at(noted) as served:
        assert (await served.post(b"1", accept="text/zglorbf")).status_code == 406
        assert calls == []


async def test_R147_a_failing_function_is_500_without_its_insides() -> None:
    """Neither a traceback nor a path leaves."""

    def reciprocal(x: int) -> float:
        return 1 / x

    async with Served.at(reciprocal) as served:
        response = await served.post(b"0", content_type=JSON)
    assert response.status_code == 500
    assert "ZeroDivisionError" in response.text
    assert "Traceback" not in response.text
    assert ".py" not in response.text


async def test_R147_a_value_that_cannot_be_serialised_is_500() -> None:
    """NaN is no JSON."""

    async def nan() -> float:
        return float("nan")

    async with Served.at(nan) as served:
        assert (await served.post(b"", content_type=JSON, accept=JSON)).status_code == 500


async def test_R148_the_function_chooses_status_and_headers() -> None:
    """X-Http-Status is obeyed and removed, other headers go out."""

    async def created(x: bytes) -> Message[str]:
        return Message("done", headers={"x-http-status": "201", "Location": "/1", "X-Name": "日本"})

    async with Served.at(created) as served:
        response = await served.post(b"1", accept=TEXT)
    assert (response.status_code, response.text, response.headers["location"]) == (201, "done", "/1")
    assert "x-http-status" not in response.headers
    assert (b"x-name", "日本".encode()) in [(name.lower(), value) for name, value in response.headers.raw]


@pytest.mark.parametrize("status", [204, 304, 205])
async def test_R148_responses_without_a_body_keep_the_connection(status: int) -> None:
    """The next response on the connection is not mistaken for their body."""

    async def empty(x: bytes) -> Message[bytes]:
        return Message(b"dropped", headers={"X-Http-Status": str(status)})

    async with Served.at(empty) as served, served.client() as client:
        for _ in range(2):
            response = await client.post("/", content=b"1")
            assert (response.status_code, response.content) == (status, b"")


async def test_R149_zero_and_two_values_are_500_and_close_the_function() -> None:
    """The function is told to stop at its second value."""
    closed = asyncio.Event()

    async def emit(counts: AsyncIterator[int]) -> AsyncIterator[int]:
        try:
            async for count in counts:
                for number in range(count):
                    yield number
        finally:
            closed.set()

    async with Served.at(emit) as served:
        for count, status in ((b"1", 200), (b"0", 500), (b"2", 500), (b"1000000000", 500)):
            closed.clear()
            assert (await served.post(count, content_type=JSON)).status_code == status
            await closed.wait()


async def test_R149_a_function_with_two_inputs_needs_a_form() -> None:
    """Another body is one input, and the other one is missing."""

    async def add(left: int, right: int) -> int:
        return left + right

    async with Served.at(add) as served, served.client() as client:
        assert (await served.post(b"1", content_type=JSON)).status_code == 400
        files = {"right": (None, b"2"), "left": (None, b"40", JSON)}
        response = await client.post("/", files=files, headers={"accept": JSON})
        assert (response.status_code, response.content) == (200, b"42")


async def test_R150_R151_the_function_sees_names_accept_and_headers() -> None:
    """One input called in, one output called out, Accept verbatim, request headers, and ours beyond forging."""

    async def seen(m: Message[bytes], ctx: Context) -> dict[str, object]:
        return {
            "names": [list(ctx.input_names), list(ctx.output_names), list(ctx.accepts)],
            "headers": {name.lower(): value for name, value in m.headers.items()},
        }

    sent = {"accept": f"{JSON}, {TEXT};q=0.5", "X-Http-Method": "FORGED", "X-Custom": "yes"}
    async with Served.at(seen) as served, served.client() as client:
        response = await client.post("/?a=1", content=b"x", headers=sent)
    told = response.json()
    assert told["names"] == [["in"], ["out"], [sent["accept"]]]
    headers = told["headers"]
    assert (headers["x-http-method"], headers["x-http-query"], headers["x-custom"]) == ("POST", "a=1", "yes")
    assert (headers["x-http-path"], headers["x-http-proto"]) == ("/", "HTTP/1.1")
    assert {"accept", "content-type"}.isdisjoint(headers)


async def test_R152_line_breaks_do_not_split_the_response() -> None:
    """A header value with CR LF is 500, and no header of its making appears."""

    async def split(x: bytes) -> Message[bytes]:
        return Message(x, headers={"X-A": "1\r\nX-Evil: 1"})

    async with Served.at(split) as served:
        response = await served.post(b"1")
    assert response.status_code == 500
    assert "x-evil" not in response.headers


async def test_R153_errors_are_json_for_who_prefers_it() -> None:
    """The body is an object with the text."""
    accept = f"something/madeup;q=0.5, {JSON}; charset=utf-8, {TEXT}"
    async with Served.at(square) as served:
        response = await served.post(b"1", content_type="application/x-doom", accept=accept)
    assert response.headers["content-type"] == JSON
    assert response.json()["error"].startswith("Invoker: Unsupported Media Type")


async def test_a_catalogue_is_served_by_name() -> None:
    """Invoker-Function chooses; an unknown name is 404, none at all 400."""
    async with Served.at(square, asquare) as served:
        assert (await served.post(b"3", content_type=JSON, invoker_function="asquare")).content == b"9"
        unknown = await served.post(b"3", invoker_function="nope")
        unnamed = await served.post(b"3")
    assert (unknown.status_code, unnamed.status_code) == (404, 400)
    assert "square, asquare" in unknown.text
    assert "ask for one by its path, such as /square, or by the header Invoker-Function" in unnamed.text


async def test_R044_a_function_chooses_an_error() -> None:
    """A StatusError has its HTTP twin, and its own text."""

    async def refuses(x: bytes) -> bytes:
        raise StatusError(Status.NOT_FOUND, "no such row")

    async with Served.at(refuses) as served:
        response = await served.post(b"x")
    assert (response.status_code, response.text) == (404, "no such row\n")


async def test_R162_an_eager_output_is_no_race() -> None:
    """A function that emits before it reads its input is answered with 200, since the input is complete."""

    def eager(xs: Iterator[bytes]) -> Iterator[str]:
        yield "hello"
        assert list(xs) == [b"x"]

    async with Served.at(eager) as served:
        response = await served.post(b"x", accept=TEXT)
    assert (response.status_code, response.text) == (200, "hello")


async def test_R163_the_annotation_steers_decoding() -> None:
    """Text becomes a number for a numeric parameter, as on gRPC."""
    async with Served.at(square) as served:
        response = await served.post(b"12", content_type=TEXT, accept=JSON)
    assert (response.status_code, response.content) == (200, b"144")


async def test_H006_a_pipe_without_a_stream_is_told_the_way() -> None:
    """Several lines are no number; the error says how they are fed one by one."""

    def mean(numbers: Iterator[float]) -> Iterator[float]:
        yield from numbers

    async def lines() -> AsyncIterator[bytes]:
        yield b"1\n2\n"

    async with Served.at(mean) as served:
        refused = await served.post(lines())
        assert refused.status_code == 400
        assert "application/x-ndjson" in refused.text
        whole = (await served.post(b"1\n2\n")).text
        assert "Accept: text/event-stream" not in whole
        assert "this input takes many values" in whole


async def test_H018_a_function_that_gives_nothing_is_answered_with_204() -> None:
    """Whether its body is one value or streams in; where a stream is asked for, it is empty."""
    taken: list[int] = []

    def store(xs: Iterator[int]) -> None:
        taken.extend(xs)

    async with Served.at(store) as served:
        one = await served.post(b"1", Content_Type="application/json")
        lines = await served.post(b"2\n3\n", Content_Type="application/x-ndjson")
        assert [(each.status_code, each.content) for each in (one, lines)] == [(204, b"")] * 2
        events = await served.post(b"4", Content_Type="application/json", Accept="text/event-stream")
        assert (events.status_code, events.text) == (200, "event: end\ndata: {}\n\n")
        assert taken == [1, 2, 3, 4]
        assert (await served.post(b"x", Content_Type="application/json")).status_code == 400


async def test_H019_bytes_are_taken_of_any_media_type() -> None:
    """As a body and as a file of a form; what is malformed, and what other parameters cannot be, is 415 as before."""

    def size(image: bytes, factor: int = 1) -> int:
        return len(image) * factor

    async with Served.at(size) as served, served.client() as client:
        assert (await served.post(b"\x89PNG", Content_Type="image/png")).text == "4"
        files = {"image": ("a.png", b"\x89PNG", "image/png"), "factor": (None, "2")}
        assert (await client.post("/", files=files)).text == "8"
        for wrong in ("image/*", "image", "*/*"):
            assert (await served.post(b"\x89PNG", Content_Type=wrong)).status_code == 415, wrong
        files["factor"] = ("b.png", b"\x89", "image/png")
        assert (await client.post("/", files=files)).status_code == 415


@pytest.mark.parametrize("path", ["/square/", "/Square", "/sqare", "/sqare/ws"])
async def test_H202_a_path_that_is_nearly_one_is_told_which(path: str) -> None:
    """Beside the names of the others."""
    async with Served.at(square, asquare) as served, served.client() as client:
        response = await client.post(path, content=b"3")
    assert response.status_code == 404
    assert "did you mean '/square'?" in response.text
    assert "this invoker serves square, asquare" in response.text


async def test_H202_many_names_are_counted() -> None:
    """So that the text can be read."""

    def named(number: int) -> object:
        def one(x: int) -> int:
            return x

        one.__name__ = f"f{number:02}"
        return one

    async with Served.at(*(named(number) for number in range(23))) as served, served.client() as client:
        far, none = await client.post("/zzzzzz", content=b"3"), await client.post("/", content=b"3")
    assert "did you mean" not in far.text
    for response in (far, none):
        assert "f18, f19 and 3 more (see /functions)" in response.text


async def test_H204_an_object_that_came_as_a_form_is_told_what_is_missing() -> None:
    """As `curl -d` sends it without a header, for one value and for a stream; the problem names the parameter."""

    async def add(a: int, b: int = 1) -> int:
        return a + b

    async with Served.at(add) as served:
        for accept in ("application/problem+json", "application/x-ndjson, application/problem+json"):
            form = {"content_type": "application/x-www-form-urlencoded", "accept": accept}
            response = await served.post(b'{"a": 1, "b": 2}', **form)
            told = response.json()
            assert (told["status"], told["parameter"]) == (400, "a")
            assert told["detail"].endswith("to give parameters by a JSON object, send Content-Type: application/json")


async def test_H208_a_function_names_the_type_of_its_value() -> None:
    """A client may ask for it, although no codec knows it; another one is refused."""

    async def picture(x: int) -> Message[bytes]:
        return Message(b"GIF89a", media_type="image/gif")

    async def page(x: int) -> Message[str]:
        return Message("<p>\u00fc", media_type="text/html")

    async with Served.at(picture, page) as served, served.client() as client:

        async def got(path: str, accept: str) -> tuple[int, str, bytes]:
            answer = await client.post(path, content=b"1", headers={"Accept": accept, "Content-Type": JSON})
            return answer.status_code, answer.headers["content-type"], answer.content

        for accept in ("image/gif", "image/*", "*/*", "image/avif, image/*;q=0.5"):
            assert await got("/picture", accept) == (200, "image/gif", b"GIF89a")
        for accept in ("text/html", "*/*"):
            assert await got("/page", accept) == (200, "text/html; charset=utf-8", "<p>\u00fc".encode())
        assert (await got("/picture", "image/png"))[0] == 406  # H-221


async def test_H210_any_number_of_values_is_given_by_one_name() -> None:
    """In a query, a form or an object, for one value and for a stream."""

    def total(*xs: int) -> int:
        return sum(xs)

    async with Served.at(total) as served, served.client() as client:
        for accept in (JSON, "application/x-ndjson"):
            accepts = {"Accept": accept}
            answers = [
                await client.post("/total?xs=1&xs=2", headers=accepts),
                await client.post("/total", data={"xs": ["1", "2"]}, headers=accepts),
                await client.post("/total", files=[("xs", b"1"), ("xs", b"2")], headers=accepts),
                await client.post("/total", files=[("a", b"1"), ("b", b"2")], headers=accepts),
                await client.post("/total", json={"xs": [1, 2]}, headers=accepts),
            ]
            assert [(one.status_code, one.text.strip()) for one in answers] == [(200, "3")] * 5
