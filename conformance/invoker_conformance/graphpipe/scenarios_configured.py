"""Optional features; each scenario needs a target that was started with the feature, and an option of this suite.

Catalogue 2.1, 2.6.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.graphpipe.requests import REFERENCE, REFERENCE_TENSOR, infer
from invoker_conformance.graphpipe.rules import told
from invoker_conformance.graphpipe.scenarios_door import GARBAGE
from invoker_conformance.graphpipe.scenarios_endings import pause, word
from invoker_conformance.graphpipe.tensors import floats
from invoker_conformance.http import Answer
from invoker_conformance.scenario import Failure, NotProvided, scenario

_SURPLUS = 8


@scenario("G-009", "G-007", function="mirror")
async def model_at_the_root(asker: Asker) -> None:
    """The model ``mirror`` is served at /, too; its own path still works, and other paths are still 404."""
    if not asker.facts.is_root:
        raise NotProvided("a model at /: --graphpipe-root")
    for path in ("/", ""):
        asker.has_tensors(await asker.ask(REFERENCE, path=path), REFERENCE_TENSOR)
    (await asker.exchange("GET", "/")).has(200, "application/json")
    (await asker.ask(REFERENCE, path="/elsewhere")).has(404)


@scenario("GT-54", "G-081", function=("mirror", "collapse"))
async def errors_with_status_200(asker: Asker) -> None:
    """Where it is configured, errors have the status 200, and their code in the buffer and in X-GraphPipe-Error."""
    if not asker.facts.is_plain_status:
        raise NotProvided("the status 200 for errors: --graphpipe-errors 200")
    for request, code, function in (
        (GARBAGE, 1, ""),
        (infer(floats(1), names=("no",)), 4, ""),
        (word("boom"), 14, "collapse"),
    ):
        answer = await asker.ask(request, function=function)
        asker.has_error(answer.has(200), code)


@scenario("GT-44", "G-079", "G-075", "G-081", function=("delay", "marks"))
async def inference_takes_too_long(asker: Asker) -> None:
    """An inference that is not done in time is E15, and its function is ended."""
    limit_s = asker.facts.timeout_s
    if limit_s >= asker.timeout_s:
        raise NotProvided("a limit of an inference that is below --timeout: --graphpipe-timeout-s")
    watch = await asker.watch("delay.closed", "delay.completed")
    began = asker.clock()
    await asker.refuses(pause(60), 15)
    if (took := asker.clock() - began) < limit_s * 0.9:
        raise Failure(f"E15 after {took:.2f} s", f"not before {limit_s:g} s", str(pause(60)))
    await watch.reaches("delay.closed", 1)
    await watch.stays("delay.completed")


@scenario("GT-44", "G-079", "G-081", "G-092", "G-012", function=("delay", "mirror"))
async def too_many_at_once(asker: Asker) -> None:
    """Inferences above the limit are E16 with Retry-After; metadata still come, and afterwards there is room."""
    most = asker.facts.most
    if not most:
        raise NotProvided("a limit of inferences at once: --max-invocations")
    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(asker.connect()) for _ in range(most + _SURPLUS)]
        for connection in connections:
            await asker.send(connection, pause(60), f", {len(connections)} times at once")
        answers = [asyncio.create_task(connection.answer()) for connection in connections]
        try:
            await _are_refused(asker, answers)
            await asker.metadata()
            (await asker.exchange("GET")).has(200)
        finally:
            for each in answers:
                each.cancel()
            await asyncio.gather(*answers, return_exceptions=True)
    await _recovers(asker)


async def _are_refused(asker: Asker, answers: list[asyncio.Task[Answer]]) -> None:
    """Check that the first answers are E16; on a slow machine some of them may be timeouts."""
    codes = []
    for answered in asyncio.as_completed(answers):
        answer = await answered
        asker.has_error(answer, 16, 15)
        codes.append(asker.checked(answer).errors[0][0])
        if codes[-1] == 16 and not (answer.header("retry-after") or "").isdigit():
            raise answer.failure("Retry-After in seconds (G-079)")
        if len(codes) == _SURPLUS:
            break
    if 16 not in codes:
        raise Failure(f"the codes {codes}", f"{told([16])} for what is too much", str(pause(60)))


async def _recovers(asker: Asker) -> None:
    """Check that the room of clients that have left is soon free for others."""
    until = asker.clock() + asker.timeout_s
    while asker.clock() < until:
        answer = await asker.ask(REFERENCE, function="mirror")
        if not asker.checked(answer).errors:
            return
        asker.has_error(answer, 16)
        await asyncio.sleep(0.05)
    raise Failure(f"E16 for {asker.timeout_s:g} s after all clients left", "that others are served", str(REFERENCE))
