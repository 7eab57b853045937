"""HTTP: bodies, methods, paths, headers, connections. Catalogue 2.1."""

from __future__ import annotations

from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.graphpipe.requests import METADATA, REFERENCE, REFERENCE_TENSOR, Request, infer
from invoker_conformance.graphpipe.tensors import floats, strings
from invoker_conformance.http import Answer
from invoker_conformance.scenario import Failure, scenario

GARBAGE = Request(b"\xff" * 100, "100 bytes of 0xFF")
FORM = ("Content-Type", "application/x-www-form-urlencoded")


@scenario("GT-01", "G-001", "G-002", function="mirror")
async def reference_metadata(asker: Asker) -> None:
    """The reference bytes of a MetadataRequest are answered with a MetadataResponse."""
    found = await asker.metadata()
    if not found.inputs or not found.outputs:
        raise Failure(str(found), "an input and an output", METADATA.text)


@scenario("GT-02", "G-001", "G-002", "G-078", function="mirror")
async def reference_inference(asker: Asker) -> None:
    """The reference bytes of an InferRequest come back as the same tensor, bit by bit."""
    await asker.gives(REFERENCE, REFERENCE_TENSOR)


@scenario("GT-03", "G-001", function="mirror")
async def any_content_type(asker: Asker) -> None:
    """The body is read as a buffer with any Content-Type: none, a form's, JSON or an unknown one."""
    for headers in ((), (FORM,), (("Content-Type", "application/json"),), (("Content-Type", "%%%"),)):
        asker.has_tensors(await asker.ask(REFERENCE, headers), REFERENCE_TENSOR)


@scenario("GT-04", "G-003", function="mirror")
async def chunked_body(asker: Asker) -> None:
    """A body in chunks of one byte, or in one chunk, is the same request; another request may follow it."""
    async with asker.connect() as connection:
        for chunks in ([bytes([each]) for each in REFERENCE.buffer], [REFERENCE.buffer]):
            said = f"POST {asker.path()} in {len(chunks)} chunks: {REFERENCE}"
            await connection.send("POST", asker.path(), (), chunks, said=said)
            asker.has_tensors(await connection.answer(), REFERENCE_TENSOR)


@scenario("GT-11", "G-003", function="mirror")
async def neither_length_nor_chunks(asker: Asker) -> None:
    """A POST without Content-Length and chunks has an empty body, which is malformed."""
    async with asker.connect() as connection:
        head = asker.transport_of().head("POST", asker.path(), [("Connection", "close")])
        await connection.send_bytes(head.encode(), f"POST {asker.path()} without Content-Length")
        asker.has_error(await connection.answer(), 1)


@scenario("GT-05", "G-004", "G-081", function="mirror")
async def announced_length_above_the_limit(asker: Asker) -> None:
    """A Content-Length of 10 GB is refused before any of the body is sent, and the connection closed."""
    for length in (10_000_000_000, asker.facts.limit_bytes + 1):
        async with asker.connect() as connection:
            head = asker.transport_of().head("POST", asker.path(), [("Content-Length", str(length))])
            await connection.send_bytes(head.encode(), f"POST {asker.path()} [Content-Length: {length}], and no body")
            _closes(asker, await connection.answer(), "too large")
    await asker.survives()


@scenario("GT-06", "G-004", function="mirror")
async def chunks_above_the_limit(asker: Asker) -> None:
    """A body in chunks is refused when it passes the limit, though its end never comes."""
    size = 1 << 16
    said = f"POST {asker.path()} in chunks without end, above {asker.facts.limit_bytes} bytes"
    async with asker.connect() as connection:
        head = asker.transport_of().head("POST", asker.path(), [("Transfer-Encoding", "chunked")])
        await connection.send_bytes(head.encode(), said)
        chunk = b"%x\r\n%s\r\n" % (size, bytes(size))
        await connection.send_bytes(chunk * (asker.facts.limit_bytes // size + 1))
        _closes(asker, await connection.answer(), "too large")
    await asker.survives()


def _closes(asker: Asker, answer: Answer, what: str) -> None:
    asker.has_error(answer, 13)
    if (answer.header("connection") or "").lower() != "close":
        raise answer.failure(f"Connection: close, since the request is {what} (G-004)")


@scenario("G-005", function="mirror")
async def expect_continue(asker: Asker) -> None:
    """100 Continue comes before the body is sent; a body that is too large is refused instead."""
    async with asker.connect() as connection:
        expects = [("Expect", "100-continue"), ("Content-Length", str(len(REFERENCE.buffer)))]
        head = asker.transport_of().head("POST", asker.path(), expects)
        await connection.send_bytes(head.encode(), f"POST {asker.path()} [Expect: 100-continue], no body yet")
        if (status := await connection.interim()) != 100:
            raise Failure(str(status), "100 Continue", f"POST {asker.path()} [Expect: 100-continue]")
        await connection.send_bytes(REFERENCE.buffer, f"POST {asker.path()} [Expect: 100-continue] {REFERENCE}")
        asker.has_tensors(await connection.answer(), REFERENCE_TENSOR)
    async with asker.connect() as connection:
        head = asker.transport_of().head(
            "POST", asker.path(), [("Expect", "100-continue"), ("Content-Length", "10000000000")]
        )
        said = f"POST {asker.path()} [Expect: 100-continue] [Content-Length: 10000000000]"
        await connection.send_bytes(head.encode(), said)
        if (status := await connection.interim()) != 413 and not asker.facts.is_plain_status:
            raise Failure(str(status), "413", said)


@scenario("G-006", function="mirror")
async def content_encoding(asker: Asker) -> None:
    """A compressed body is refused with 415; the coding identity is accepted."""
    for coding in ("gzip", "deflate", "br", "identity, gzip"):
        (await asker.ask(REFERENCE, [("Content-Encoding", coding)])).has(415)
    asker.has_tensors(await asker.ask(REFERENCE, [("Content-Encoding", "identity")]), REFERENCE_TENSOR)


@scenario("GT-08", "G-008", function=("mirror", "marks"))
async def methods(asker: Asker) -> None:
    """HEAD is GET without body; other methods are refused with 405 and Allow, and nothing is invoked."""
    watch = await asker.watch("mirror.calls")
    got, headed = await asker.exchange("GET"), await asker.exchange("HEAD")
    if headed.status != got.status or headed.header("content-type") != got.header("content-type"):
        raise headed.failure(f"what GET has: {got.status} {got.header('content-type')}")
    if headed.header("content-length") not in (None, str(len(got.body))):
        raise headed.failure(f"no Content-Length, or GET's {len(got.body)}")
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = (await asker.exchange(method, request=REFERENCE)).has(405)
        allowed = {each.strip().upper() for each in (answer.header("allow") or "").split(",")}
        if allowed != {"GET", "HEAD", "POST"}:
            raise answer.failure(f"Allow: GET, HEAD, POST, not {answer.header('allow')}")
    await watch.stays("mirror.calls")


@scenario("GT-08", "G-009", function=("mirror", "marks"))
async def unknown_paths(asker: Asker) -> None:
    """Another path is answered with 404 and a text instead of a buffer, and nothing is invoked."""
    watch = await asker.watch("mirror.calls")
    where = asker.path().rstrip("/")
    for path in (
        f"{where}/more",
        f"{where or '/'}x",
        "/graphpipe/no-such-model",
        "/control/../graphpipe/no-such-model",
    ):
        answer = (await asker.exchange("POST", path, request=REFERENCE)).has(404)
        if not (answer.header("content-type") or "").startswith("text/"):
            raise answer.failure("a text, not a buffer (G-009)")
    await watch.stays("mirror.calls")


@scenario("G-010", function="mirror")
async def readiness(asker: Asker) -> None:
    """A target that serves answers ok to the checks for ready and for alive."""
    for path in ("/control/is_ready", "/control/is_alive"):
        answer = (await asker.exchange("GET", path)).has(200)
        if answer.body.strip() != b"ok":
            raise answer.failure("the body 'ok'")


@scenario("G-011", function="mirror")
async def no_shutdown(asker: Asker) -> None:
    """The process cannot be ended over HTTP."""
    for method in ("GET", "POST"):
        (await asker.exchange(method, "/control/shutdown")).has(404)
    await asker.survives()


@scenario("GT-10", "G-012", "G-101", function="mirror")
async def connection_after_errors(asker: Asker) -> None:
    """A connection continues after a malformed request, a wrong tensor, a wrong method, and a HEAD."""
    wrong = infer(floats(1, 2), names=("a", "b"))
    async with asker.connect() as connection:
        for request, code in ((GARBAGE, 1), (REFERENCE, 0), (wrong, 3), (Request(b"", "no bytes"), 1), (REFERENCE, 0)):
            await asker.send(connection, request, ", on one connection")
            answer = await connection.answer()
            asker.has_error(answer, code) if code else asker.has_tensors(answer, REFERENCE_TENSOR)
        for method, status in (("DELETE", 405), ("HEAD", 200), ("GET", 200)):
            await connection.send(method, asker.path(), (), b"")
            (await connection.answer(is_bodiless=method == "HEAD")).has(status)
        await asker.send(connection, REFERENCE, ", after errors")
        asker.has_tensors(await connection.answer(), REFERENCE_TENSOR)


@scenario("G-012", function="mirror")
async def pipelined_requests(asker: Asker) -> None:
    """Requests that are sent at once on a connection are answered in order."""
    several = [infer(floats(number)) for number in range(8)]
    async with asker.connect() as connection:
        for request in several:
            await asker.send(connection, request, ", eight of them at once")
        for number in range(len(several)):
            asker.has_tensors(await connection.answer(), floats(number))


@scenario("GT-56", "G-109", function=("mirror", "marks"))
async def accept(asker: Asker) -> None:
    """An Accept that leaves application/octet-stream out is answered with 406, and the function is not called."""
    watch = await asker.watch("mirror.calls")
    for wanted in ("text/html", "application/json", "application/octet-stream;q=0, */*", "text/*"):
        (await asker.ask(REFERENCE, [("Accept", wanted)])).has(406)
    await watch.stays("mirror.calls")
    for wanted in ("*/*", "application/octet-stream", "text/html, application/*;q=0.1"):
        asker.has_tensors(await asker.ask(REFERENCE, [("Accept", wanted)]), REFERENCE_TENSOR)


@scenario("G-110", function="mirror")
async def http_1_0(asker: Asker) -> None:
    """A client of HTTP/1.0 gets the whole body in one piece, and then the end of the connection."""
    async with asker.connect() as connection:
        head = asker.transport_of().head("POST", asker.path(), [("Content-Length", str(len(REFERENCE.buffer)))])
        said = f"POST {asker.path()} HTTP/1.0 {REFERENCE}"
        await connection.send_bytes(head.replace("HTTP/1.1", "HTTP/1.0", 1).encode() + REFERENCE.buffer, said)
        answer = await connection.answer()
        if answer.header("transfer-encoding") is not None:
            raise answer.failure("no Transfer-Encoding, which HTTP/1.0 does not know (G-110)")
        asker.has_tensors(answer, REFERENCE_TENSOR)
        await connection.ends()


@scenario("G-108", function="heard")
async def headers_in_the_context(asker: Asker) -> None:
    """X-Request-Id and traceparent of a request are in its function's context."""
    for name, value in (("X-Request-Id", "r-17"), ("traceparent", f"00-{'1' * 32}-{'2' * 16}-01")):
        answer = await asker.ask(infer(strings(name.lower().encode(), shape=())), [(name, value)])
        asker.has_tensors(answer, strings(value.encode(), shape=()))
