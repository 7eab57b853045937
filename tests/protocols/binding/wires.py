"""The same call over every protocol: arguments as its peers write them, and what they hear, without the wire's prefix.

Each wire is a function of a `Given`; it returns the text that the function gives, raises `Refused` with a sentence, or
raises `CannotSay` with the reason if a peer of this wire cannot write such a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unicodedata import normalize
from urllib.parse import urlencode

from invoker._pb.riff import riff_rpc_pb2
from invoker.author.spec import Style
from invoker.codecs.anyvalue import pack, unpack
from invoker.context import Context
from invoker.core.http import BodyChunk, RequestHead, Response
from invoker.core.steps import Feed, Open
from invoker.errors import NestedError
from invoker.execution.nested.order import Order
from invoker.protocols.evergreen.action_engine.session import ActionEngineSession
from invoker.protocols.evergreen.action_engine.settings import ActionEngineSettings
from invoker.protocols.evergreen.action_engine.table import Table
from invoker.protocols.evergreen.action_engine.wire import Action, Chunk, Fragment, Metadata, decode, encode
from invoker.protocols.evergreen.session import EvergreenSession
from invoker.protocols.graphpipe.answer import Answer
from invoker.protocols.graphpipe.session import GraphPipeSession
from invoker.protocols.riff.session import RiffSession
from invoker.protocols.toolbridge.errors import BridgeError
from invoker.protocols.typed.calls import calls_of
from invoker.protocols.typed.session import TypedSession
from invoker.protocols.web.http import HttpSession
from invoker.protocols.web.socket import SocketSession
from invoker.tensors import InferRequest, read_infer_response, write_request
from invoker.tensors.arrays import to_array, to_tensor
from tests.protocols.binding.world import CALL, CannotSay, Given, Plain, Refused, World, bare, only
from tests.protocols.evergreen.notation import JSON, A, F, K, M, Sent
from tests.reference.driver import Heard


def nested(world: World, name: str, given: Given) -> str:
    """``Context.call``."""
    try:
        order = Order(world.engine, Context("1", "caller"), name, given.args, given.kwargs, 8)
    except NestedError as error:
        raise Refused(error.detail) from None
    feeds = [(one.index, one.message) for one in order.given() if isinstance(one, Feed)]
    opening = Open(CALL, name, ("application/json",), bound=order.open.bound, protocol="nested")
    return json.loads(only(world.play(Plain(opening, feeds), b""), "Invoker: ").payload)


def toolbridge(world: World, name: str, given: Given) -> str:
    """ExecuteTool."""
    named = {key: pack(one) for key, one in given.kwargs.items()}
    try:
        return unpack(tool_call(world, name, [pack(one) for one in given.args], named))
    except BridgeError as error:
        raise Refused(error.detail) from None


def tool_call(world: World, name: str, args: Sequence[bytes], named: Mapping[str, bytes]) -> bytes:
    """The result of a tool; raises BridgeError if it cannot be called so."""
    tool = world.tool(name)
    bound = tool.bind(args, named)
    opening = Open(CALL, name, tool.accepts, bound=bound.names, input_names=bound.names, protocol="toolbridge")
    result: bytes = only(world.play(Plain(opening, bound.feeds), b""), "Invoker: ").payload
    return result


def graphpipe(world: World, name: str, given: Given) -> str:
    """A request with a name for each tensor, which is empty for a default."""
    check_tensors(world, name, given)
    values = [*given.args, *(one for _, one in given.named)]
    names = [*([""] * len(given.args)), *(key for key, _ in given.named)]
    asked = InferRequest(tuple(map(to_tensor, values)), input_names=tuple(names) if given.named else ())
    heard = world.play(GraphPipeSession(world.model(name)), bytes(write_request(asked)))
    (frame,) = heard.frames
    read = read_infer_response(bytes(frame.response() if isinstance(frame, Answer) else frame))
    if read.errors:
        raise Refused(bare(read.errors[0].message, r"GraphPipe: [A-Z][A-Za-z ]*: "))
    return bytes(to_array(read.tensors[0]).tolist()).decode()


def check_tensors(world: World, name: str, given: Given) -> None:
    """What no tensors can say."""
    for one in (*given.args, *(one for _, one in given.named)):
        if one is None:
            raise CannotSay("no tensor is None")
        if isinstance(one, list):
            raise CannotSay("an input is one tensor")
    by_keyword = [one for one in world.functions[name].spec.call.parameters if not (one.by_position or one.is_variadic)]
    if by_keyword and len(given.args) > len(world.model(name).inputs) - len(by_keyword):
        raise CannotSay("inputs by keyword have positions, too")


def evergreen(world: World, name: str, given: Given) -> str:
    """A session of one action; each value is a node."""
    nodes = [(key, f"n{place}", value) for place, (key, value) in enumerate(given.all_named)]
    parts: list[Any] = [A(name, [(key, id) for key, id, _ in nodes], {"y": "r"})]
    for _, id, value in nodes:
        if not isinstance(value, list):
            parts.append(F(id, 0, json.dumps(value), type=JSON))
            continue
        leaves = [f"{id}.{at}" for at in range(len(value))]
        parts += [
            K(id, 0, *leaves),
            *(F(leaf, 0, json.dumps(one), type=JSON) for leaf, one in zip(leaves, value, strict=True)),
        ]
    session = EvergreenSession([one.spec for one in world.functions.values()])
    heard = world.play(session, M(*parts), is_storing=True)
    check_action(heard, name)
    sent = Sent()
    for frame in heard.frames:
        sent.take(frame)
    return b"".join(one.chunk_fragment.data for one in sent.of("r")).decode()


def check_action(heard: Heard, name: str) -> None:
    """Raise `Refused` if the session ended with an error."""
    assert heard.close is not None
    if heard.close.error is not None:
        raise Refused(bare(str(heard.close.error).replace(f"action '{name}' #1", f"'{name}'"), "Evergreen: .*?: "))


def action_engine(world: World, name: str, given: Given) -> str:
    """The same on the wire of action-engine."""
    if not given.all_named and world.functions[name].spec.required:
        raise CannotSay("an action that lists no inputs has those that are required, in nodes of their names")
    nodes = [(key, f"n{place}", value) for place, (key, value) in enumerate(given.all_named)]
    fragments = []
    for _, id, value in nodes:
        each = value if isinstance(value, list) else [value]
        fragments += [
            Fragment(id, Chunk(json.dumps(one).encode(), metadata=Metadata(JSON)), at, continued=at < len(each) - 1)
            for at, one in enumerate(each)
        ]
    action = Action("A", name, tuple((key, id) for key, id, _ in nodes), (("y", "r"),))
    settings = ActionEngineSettings()
    session = ActionEngineSession(Table([one.spec for one in world.functions.values()], settings), {}, settings)
    heard = world.play(session, encode(fragments, [action]), is_storing=True)
    told = [one for frame in heard.frames for one in decode(frame).fragments if one.id == "r"]
    chunks = [one.content for one in told if isinstance(one.content, Chunk)]
    for one in chunks:
        if one.metadata is not None and one.metadata.media_type == "__status__" and one.data[:1] != b"\0":
            raise Refused(bare(one.data[1:].decode(), "Invalid Action: |Invoker: .*?: "))
    return b"".join(
        one.data for one in chunks if one.metadata is None or one.metadata.media_type != "__status__"
    ).decode()


def riff(world: World, name: str, given: Given) -> str:
    """Frames of inputs, the last first."""
    names, values = labelled(world, name, given)
    start = riff_rpc_pb2.StartFrame(expectedContentTypes=[JSON], inputNames=names)
    frames = [riff_rpc_pb2.InputSignal(start=start)]
    for index in reversed(range(len(values))):
        for one in values[index] if isinstance(values[index], list) else [values[index]]:
            data = riff_rpc_pb2.InputFrame(argIndex=index, payload=json.dumps(one).encode(), contentType=JSON)
            frames.append(riff_rpc_pb2.InputSignal(data=data))
    heard = world.play(RiffSession(function=name), *(one.SerializeToString() for one in frames))
    try:
        frame = only(heard, "Invoker: .*?: ")
    except Refused as error:
        raise Refused(without_hint(str(error))) from None
    return json.loads(riff_rpc_pb2.OutputSignal.FromString(frame).data.payload)


def without_hint(sentence: str) -> str:
    """A refusal of riff's without the number of names that is expected."""
    return re.split(r"; expected [0-9a-z ]+ inputNames", sentence)[0]


def labelled(world: World, name: str, given: Given) -> tuple[list[str], list[Any]]:
    """Labels for required inputs, then names of options; and the values."""
    spec = world.functions[name].spec
    required = [one for one in spec.inputs if not one.is_ignored]
    free = max(len(required), 1)
    if len(given.args) < min(free, len(given.args) + len(given.named)):
        raise CannotSay("the first names are labels, which mean positions")
    if not (given.args or given.named) or not (required or spec.spare):
        raise CannotSay("the frames of an input say how often the function is called")
    if spec.open_inputs and given.named:
        raise CannotSay("each name is a label")
    if len(given.args) > free:
        raise CannotSay("an option has a name")
    names = [*(f"in{place}" for place in range(len(given.args))), *(key for key, _ in given.named)]
    return names, [*given.args, *(one for _, one in given.named)]


def _check_web(world: World, name: str, given: Given) -> None:
    """What peers of HTTP cannot say, whether by a query or by a body."""
    spec, names = world.functions[name].spec, [key for key, _ in given.all_named]
    streams = {one.name for one in spec.inputs if not one.single} if spec.style is Style.STREAMING else set()
    if not (spec.inputs and not spec.inputs[0].is_ignored) and not spec.spare:
        raise CannotSay("a function without parameters is called whatever is sent")
    if streams - {*names}:
        raise CannotSay("a stream that gets nothing is an empty one (R-168)")
    if any(names.count(one) > 1 for one in streams):
        raise CannotSay("each value of a name is one of its stream")


def _web(world: World, name: str, query: str, body: bytes, kind: str) -> str:
    head = RequestHead("POST", f"/{name}", query, "1.1", [("Content-Type", kind)] if kind else [])
    session = HttpSession(lambda _: world.signature(name), max_body_bytes=10_000)
    heard = world.play(session, head, *([BodyChunk(body)] if body else []))
    (answer,) = heard.frames
    assert isinstance(answer, Response)
    text = (answer.body + b"".join(map(bytes, answer.pieces))).decode()
    if answer.status != 200:
        raise Refused(re.split(r"; give it as| \(--http|; the body was", bare(text.strip(), "Invoker: .*?: "))[0])
    return json.loads(text) if text[:1] == '"' else text


def web_json(world: World, name: str, given: Given) -> str:
    """A JSON object with a member for each parameter."""
    if not given.named:
        raise CannotSay("a request without a body gives nothing")
    _check_web(world, name, given)
    members = dict(given.all_named)
    if any(isinstance(value, list) for value in members.values()):
        raise CannotSay("the values of a stream are lines")
    if len(members) < len(given.named):
        raise CannotSay("the last of two members of a name counts")
    return _web(world, name, "", json.dumps(members).encode(), JSON)


def web_query(world: World, name: str, given: Given) -> str:
    """A query with a value for each parameter."""
    _check_web(world, name, given)
    if world.signature(name).more is None and any(key == "zzz" for key, _ in given.named):
        raise CannotSay("a key that is like no parameter belongs to others (H-201)")
    pairs = [(key, one) for key, value in given.all_named for one in (value if isinstance(value, list) else [value])]
    if any(value is None for _, value in pairs):
        raise CannotSay("no text is None")
    return _web(world, name, urlencode(pairs), b"", "")


def websocket(world: World, name: str, given: Given) -> str:
    """Frames for inputs, and a query for options."""
    shape = world.shape(name)
    spec = world.functions[name].spec
    names = [normalize("NFKC", key) for key, _ in given.all_named]
    own = [one.name for one in spec.inputs if not one.is_ignored]
    asked = {*shape.singles, *(one.name for one in spec.spare)}
    if spec.open_inputs or not own or {*own} - {*names}:
        raise CannotSay("an input to which nothing is sent is an empty stream")
    if any(names.count(one) > 1 for one in own if one not in asked):
        raise CannotSay("each value of a name is one of its stream")
    if spec.open_names and {*names} - {one.name for one in (*spec.inputs, *spec.optional)}:
        raise CannotSay("keyword arguments come by the query")
    queried = [(key, value) for key, value in given.named if normalize("NFKC", key) in asked]
    if any(value is None for _, value in queried):
        raise CannotSay("no text is None")
    frames = [
        json.dumps({"input": key, "data": one})
        for key, value in given.named
        if normalize("NFKC", key) not in asked
        for one in (value if isinstance(value, list) else [value])
    ]
    head = RequestHead("GET", f"/{name}/ws", urlencode(queried), "1.1", [])
    session = SocketSession(shape)
    told = json.loads(only(world.play(session, head, *frames, '{"end":true}'), "Invoker: .*?: "))
    return told["data"]


def typed(world: World, name: str, given: Given) -> str:
    """The JSON of the method's request."""
    (call,) = calls_of([world.functions[name].spec])
    known = {slot.name: slot for slot in call.slots}
    if call.streams_in:
        raise CannotSay("a stream of requests has one item in each message")
    further = next((slot for slot in call.slots if slot.is_named), None)
    fields: dict[str, Any] = {}
    for key, value in given.all_named:
        if value is None:
            raise CannotSay("a field that is null is not there (protobuf)")
        if key in known and known[key].field not in fields:
            fields[known[key].field] = value
            continue
        if further is None:
            raise CannotSay("a field is there once, and one that the schema does not have is not there (protobuf)")
        if key in fields.setdefault(further.field, {}):
            raise CannotSay("a map has each name once")
        fields[further.field][key] = value
    if any(not slot.is_option and slot.field not in fields for slot in call.slots):
        raise CannotSay("a field that is not there has its default value (protobuf)")
    heard = world.play(TypedSession(call, is_json=True), json.dumps(fields).encode())
    frame = only(heard, "Invoker: .*?: ")
    return next(iter(json.loads(frame).values()))


Wire = Callable[[World, str, Given], str]
WIRES: dict[str, Wire] = {
    "nested": nested,
    "toolbridge": toolbridge,
    "graphpipe": graphpipe,
    "evergreen": evergreen,
    "action-engine": action_engine,
    "riff": riff,
    "web, json": web_json,
    "web, query": web_query,
    "websocket": websocket,
    "typed": typed,
}
