"""The same call by the clients: what a caller gives them, played to the sessions of servers, and what the caller gets.

Nothing is connected: the pure halves of each client make the messages, and read the answers.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any
from unicodedata import normalize

from invoker._pb.dspex import bridge_pb2
from invoker._pb.evergreen import evergreen_pb2
from invoker._pb.riff import riff_rpc_pb2
from invoker.connect.failure import UsageError
from invoker.connect.sources import frames
from invoker.protocols.evergreen.client.session import EvergreenSession as EvergreenClient
from invoker.protocols.evergreen.session import EvergreenSession
from invoker.protocols.graphpipe.answer import Answer
from invoker.protocols.graphpipe.client.failure import GraphPipeError
from invoker.protocols.graphpipe.client.links import Reply
from invoker.protocols.graphpipe.client.requests import result_of, written
from invoker.protocols.graphpipe.session import GraphPipeSession
from invoker.protocols.riff.client.frames import InputEncoder, Received
from invoker.protocols.riff.client.known import Known
from invoker.protocols.riff.client.request import Request
from invoker.protocols.riff.service.describe import describe
from invoker.protocols.riff.session import RiffSession
from invoker.protocols.riff.verbs.call import add_arguments
from invoker.protocols.riff.verbs.plan import make_plan
from invoker.protocols.toolbridge.client.failure import ToolExecutionError
from invoker.protocols.toolbridge.client.session import SessionOptions, ToolSession
from invoker.protocols.toolbridge.errors import BridgeError, translated
from invoker.protocols.toolbridge.wire import CallRequest
from tests.protocols.binding import wires
from tests.protocols.binding.wires import Wire
from tests.protocols.binding.world import CannotSay, Given, Refused, World, bare, only
from tests.protocols.evergreen.notation import JSON

LIMIT = 1 << 20


def riff(world: World, name: str, request: Request, inputs: list[list[Any]]) -> str:
    """Frames of inputs, from the first to the last."""
    encoders = [
        InputEncoder(at, content_type=request.content_type_of(at), headers={}, registry=world.registry)
        for at in range(len(inputs))
    ]
    sent = [encoders[at].encode(one) for at in reversed(range(len(inputs))) for one in inputs[at]]
    heard = world.play(RiffSession(function=name), request.start_signal(), *sent)
    try:
        frame = riff_rpc_pb2.OutputSignal.FromString(only(heard, "Invoker: .*?: ")).data
    except Refused as error:
        raise Refused(wires.without_hint(str(error))) from None
    value: str = Received(frame, name="", registry=world.registry).value
    return value


def riff_client(world: World, name: str, given: Given) -> str:
    """`RiffClient.invoke` with ``input_names``."""
    names, values = wires.labelled(world, name, given)
    request = Request(accept=JSON, content_type=JSON, input_names=names)
    return riff(world, name, request, [one if isinstance(one, list) else [one] for one in values])


def invoker_call(world: World, name: str, given: Given) -> str:
    """``invoker call --arg NAME=VALUE``, or INDEX=VALUE."""
    spec = world.functions[name].spec
    described = describe(spec)
    own, rest = [one.name for one in described.inputs], [one for one in spec.call.parameters if one.is_variadic]
    keys = [*own[: len(given.args)], *(normalize("NFKC", key) for key, _ in given.named)]
    others = {*keys} - {*own}
    if not keys or (given.args and described.inputs[0].is_trigger):
        raise CannotSay("the first input is stdin, or does not matter")
    if not rest and len(given.args) > sum(one.by_position for one in spec.call.parameters if one.stream is not None):
        raise CannotSay("inputs by keyword have indexes, too")
    is_hidden = any(one.stream.name not in own for one in rest if one.stream is not None and one.by_position)
    if is_hidden and (len(given.args) > len(own) or others):
        raise CannotSay("what is not described has neither name nor index, and is not listed")
    if spec.open_inputs and spec.open_names and others:
        raise CannotSay("beside any number of inputs riff has no names")
    if any(keys.count(one.name) > 1 and one.is_stream for one in described.inputs):
        raise CannotSay("each value of a name is one of its stream")
    if any(value is None for value in (*given.args, *(one for _, one in given.named))):
        raise CannotSay("no text is None")
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    words = [
        f"--arg={key}={one}"
        for key, value in (*enumerate(given.args), *given.named)
        for one in (value if isinstance(value, list) else [value])
    ]
    try:
        plan = make_plan(parser.parse_args(["127.0.0.1:1", *words]), Known(described))
    except UsageError as error:
        raise Refused(str(error).partition("; give --arg")[0]) from None
    if plan.reads_stdin:
        raise CannotSay("stdin is the first input")

    async def read() -> list[list[Any]]:
        parted = zip(plan.inputs, plan.framings, strict=True)
        return [[one async for one in frames(parts, framing)] for parts, framing in parted]

    try:
        return riff(world, name, plan.request, asyncio.run(read()))
    except Refused as error:
        raise AssertionError(f"it was sent: {error}") from None


def toolbridge_client(world: World, name: str, given: Given) -> str:
    """`ToolSession.call`."""

    class Bridge:
        target = "bridge"

        async def ask(self, _: str, request: Any, answer: Any, **__: Any) -> Any:
            sent = CallRequest.FromString(request.SerializeToString())
            try:
                value = wires.tool_call(world, sent.tool_id, list(sent.args), dict(sent.kwargs))
            except BridgeError as error:
                if [*sent.kwargs] != [*given.kwargs]:
                    raise CannotSay("a map has no order, and the first of several faults is told") from None
                return answer(success=False, error=translated(error).info())
            return answer(success=True, result=bridge_pb2.google_dot_protobuf_dot_any__pb2.Any.FromString(value))

    session = ToolSession(Bridge(), "", SessionOptions(), is_kept=True)  # type: ignore[arg-type]
    try:
        return str(asyncio.run(session.call(name, *given.args, **given.kwargs)))
    except ToolExecutionError as error:
        raise Refused(error.message) from None


def graphpipe_client(world: World, name: str, given: Given) -> str:
    """`GraphPipe.infer` with values by position, or with a dict of them."""
    wires.check_tensors(world, name, given)
    if given.args and given.named:
        raise CannotSay("a request has names for all inputs, or for none")
    asked = written([given.kwargs] if given.named else given.args, None, b"", scalar_as_vector=False)
    (frame,) = world.play(GraphPipeSession(world.model(name)), b"".join(asked.pieces)).frames
    reply = Reply(bytes(frame.response() if isinstance(frame, Answer) else frame))
    try:
        return bytes(result_of(reply, LIMIT, None).tolist()).decode()
    except GraphPipeError as error:
        raise Refused(bare(error.message, r"GraphPipe: [A-Z][A-Za-z ]*: ")) from None


def evergreen_client(world: World, name: str, given: Given) -> str:
    """`EvergreenSession.act`."""
    inputs = dict(given.all_named)
    if len(inputs) < len(given.named):
        raise CannotSay("a map has each name once")

    async def act() -> str:
        client = EvergreenClient("server")
        client._call.is_open = True
        answer = client.act(name, inputs, outputs="y")
        server = EvergreenSession([one.spec for one in world.functions.values()])
        heard = world.play(server, *client._call.outbox._messages, is_storing=True)
        wires.check_action(heard, name)
        for frame in heard.frames:
            client._inbox.receive(evergreen_pb2.SessionMessage.FromString(frame))
        client._inbox.end(None)
        return await answer.text()

    return asyncio.run(act())


CLIENTS: dict[str, Wire] = {
    "riff client": riff_client,
    "invoker call": invoker_call,
    "toolbridge client": toolbridge_client,
    "graphpipe client": graphpipe_client,
    "evergreen client": evergreen_client,
}
