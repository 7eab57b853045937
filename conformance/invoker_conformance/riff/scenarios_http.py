"""Request/reply over HTTP: requests, types, statuses. Catalogue 2.11."""

from __future__ import annotations

import json

from invoker_conformance.riff import frames
from invoker_conformance.riff.frames import FORM, JSON, OCTETS, TEXT
from invoker_conformance.riff.probe import Probe
from invoker_conformance.scenario import NotProvided, scenario

_AS_JSON = ("Content-Type", JSON)


@scenario("RT-76", "R-141", "R-143", "R-148", function="echo")
async def echo_with_defaults(probe: Probe) -> None:
    """Without Content-Type and Accept, bytes come back as octet-stream, also with a query string."""
    (await probe.post(b"\x00\xff")).has(200, OCTETS, b"\x00\xff")
    (await probe.post(b"\x00\xff", path="/?a=1&b=%20")).has(200, OCTETS, b"\x00\xff")


@scenario("R-148", "R-141", function="square")
async def success(probe: Probe) -> None:
    """A result is answered with 200, the selected type and the payload."""
    (await probe.post(b"7", _AS_JSON, ("Accept", f"image/png, {TEXT}, {JSON}"))).has(200, TEXT, b"49")
    (await probe.post(b"7", _AS_JSON, ("Accept", f"{TEXT};q=0.1, {JSON}"))).has(200, JSON, b"49")


@scenario("R-163", function="square")
async def annotation_steers_decoding(probe: Probe) -> None:
    """text/plain is converted for a numeric parameter as on gRPC."""
    (await probe.post(b"12", ("Content-Type", TEXT), ("Accept", JSON))).has(200, JSON, b"144")


@scenario("RT-77", "R-144", function="echo")
async def unsupported_media_type(probe: Probe) -> None:
    """A body of a type without a decoder is answered with 415 and the text of the error."""
    for media_type in ("application/x-doom", "*/*", "!![]not a type"):
        answer = (await probe.post(b"1", ("Content-Type", media_type))).has(415)
        if b"Unsupported Media Type" not in answer.body:
            raise answer.failure("415 with the text 'Invoker: Unsupported Media Type'")


@scenario("RT-77", "R-146", function=("square", "marks"))
async def not_acceptable_over_http(probe: Probe) -> None:
    """A request that accepts no type that can be encoded is answered with 406, before the function runs."""
    watch = await probe.watch("square.calls")
    answer = (await probe.post(b"2", _AS_JSON, ("Accept", "text/zglorbf"))).has(406)
    if b"Not Acceptable" not in answer.body:
        raise answer.failure("406 with the text 'Invoker: Not Acceptable'")
    await watch.stays("square.calls")


@scenario("RT-77", "R-145", function="square")
async def undecodable_body(probe: Probe) -> None:
    """A body that its codec cannot decode is answered with 400."""
    for body in (b"{", b"", b'"x"'):
        (await probe.post(body, _AS_JSON)).has(400)


@scenario("RT-77", "R-147", "R-117", function="reciprocal")
async def function_raises_over_http(probe: Probe) -> None:
    """An exception of the function is answered with 5xx, without a traceback."""
    answer = (await probe.post(b"0", _AS_JSON)).is_server_error()
    if b"Traceback" in answer.body or b".py" in answer.body:
        raise answer.failure("5xx without traceback and paths")


@scenario("R-147", function="odd")
async def result_that_cannot_be_serialised(probe: Probe) -> None:
    """A result that cannot be serialised is answered with 5xx."""
    (await probe.post(b'"nan"', _AS_JSON, ("Accept", JSON))).is_server_error()
    (await probe.post(b'"opaque"', _AS_JSON)).is_server_error()


@scenario("RT-78", "R-153", function="echo")
async def error_bodies(probe: Probe) -> None:
    """An error is a JSON object if JSON ranks best in Accept, and otherwise a text with a final newline."""
    for accept in (f"something/madeup;q=0.5, {JSON}; charset=utf-8, {TEXT}", JSON, f"{TEXT};q=0.3, {JSON};q=0.4"):
        answer = (await probe.post(b"1", ("Content-Type", "application/x-doom"), ("Accept", accept))).has(415, JSON)
        error = json.loads(answer.body)
        if set(error) != {"error"} or "Unsupported Media Type" not in error["error"]:
            raise answer.failure('{"error": "Invoker: Unsupported Media Type: ..."}')
    for accept in (TEXT, f"{TEXT}, {JSON}", f"{JSON};q=0.3, {TEXT};q=0.4"):
        answer = (await probe.post(b"1", ("Content-Type", "application/x-doom"), ("Accept", accept))).has(415, TEXT)
        if not answer.body.endswith(b"\n"):
            raise answer.failure("415 with a text that ends with a newline")


@scenario("RT-79", "R-142", function=("square", "marks"))
async def other_methods_and_paths(probe: Probe) -> None:
    """Another method on / is answered with 405 and Allow: POST, another path with 404; the function is not called."""
    watch = await probe.watch("square.calls")
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        answer = (await probe.transport.exchange(method, "/", (_AS_JSON,), b"2")).has(405)
        if (answer.header("allow") or "").replace(" ", "") != "POST":
            raise answer.failure(f"Allow: POST, not {answer.header('allow')!r}")
    (await probe.post(b"2", _AS_JSON, path="/nope")).has(404)
    await watch.stays("square.calls")


@scenario("R-150", function="names")
async def start_frame_of_a_request(probe: Probe) -> None:
    """The function sees the names in and out, and Accept as it came."""
    accept = f"{JSON}, {TEXT};q=0.5"
    answer = (await probe.post(b"null", _AS_JSON, ("Accept", accept))).has(200, JSON)
    wanted = {"inputs": ["in"], "outputs": ["out"], "accepts": [accept]}
    if json.loads(answer.body) != wanted:
        raise answer.failure(str(wanted))


@scenario("RT-80", "R-149", "R-138", function=("emit", "marks"))
async def zero_and_two_outputs(probe: Probe) -> None:
    """One output is the answer; no output, and two, are answered with 5xx, and the function is stopped."""
    watch = await probe.watch("emit.calls", "emit.closed")
    (await probe.post(b"1", _AS_JSON)).has(200, JSON, b"0")
    for count in (b"0", b"2", b"-1"):
        (await probe.post(count, _AS_JSON)).is_server_error()
    await watch.reaches("emit.closed", "emit.calls")


@scenario("R-149", function="pairs")
async def arity_that_http_cannot_serve(probe: Probe) -> None:
    """A request to a function with two inputs is answered with 5xx."""
    (await probe.post(b"1", _AS_JSON)).is_server_error()


@scenario("R-162", "R-049", function="total")
async def aggregator_over_http(probe: Probe) -> None:
    """An aggregator answers with its result for the one value."""
    (await probe.post(b"7", _AS_JSON)).has(200, JSON, b"7")


@scenario("R-162", function="emit")
async def eager_output_over_http(probe: Probe) -> None:
    """A function that emits before it has read all of its input is answered with 200."""
    (await probe.post(frames.to_json(1), _AS_JSON)).has(200, JSON, b"0")


@scenario("R-156", function=("square", "marks"))
async def healthz(probe: Probe) -> None:
    """GET /healthz, where it is offered, is answered with 200, and the function is not called."""
    watch = await probe.watch("square.calls")
    if (answer := await probe.transport.exchange("GET", "/healthz")).status == 404:
        raise NotProvided("GET /healthz")
    answer.has(200)
    await watch.stays("square.calls")


@scenario("R-169", function="greet")
async def names_over_http(probe: Probe) -> None:
    """A query parameter, a form field and a member of an object fill the parameter of their name."""
    for path in ("/?name=Bob", "/?name=Bob&other=1"):
        (await probe.post(b"", path=path)).has(200, JSON, b'"hello Bob"')
    (await probe.post(b"name=Bob", ("Content-Type", FORM))).has(200, JSON, b'"hello Bob"')
    (await probe.post(b"Bob", ("Content-Type", FORM))).has(200, JSON, b'"hello Bob"')
    (await probe.post(b'{"name": "Bob"}', _AS_JSON)).has(200, JSON, b'"hello Bob"')
    (await probe.post(b"")).has(200, JSON, b'"hello world"')
