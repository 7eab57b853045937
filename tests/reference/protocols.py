"""How peers of each protocol call the functions: their frames, and what they read in the answers.

Some of what they send is wrong: frames that are none, media types that nobody decodes, values of another type, bodies
that are cut off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.author.spec import FunctionSpec
from invoker.codecs import Registry, builtin
from invoker.core.http import BodyChunk, RequestHead, Response, ResponseHead
from invoker.errors import InvocationError
from invoker.message import Headers
from invoker.protocols.riff.session import RiffSession
from invoker.protocols.typed.calls import calls_of
from invoker.protocols.typed.codec import Book, FieldCodec
from invoker.protocols.typed.session import TypedSession
from invoker.protocols.typed.split import bytes_field
from invoker.protocols.web.asking import RefusedError, ask
from invoker.protocols.web.fields import signature_of
from invoker.protocols.web.http import HttpSession
from invoker.protocols.web.stream import StreamSession
from tests.reference.functions import FORMS
from tests.reference.steps import steps
from tests.reference.talk import JSON, Item, Talk, values_of

LINES, EVENTS = "application/x-ndjson", "text/event-stream"
_MOST_BYTES = 300


def registry_for(form: str) -> Registry:
    """The codecs that the functions of a form need, also those of typed methods."""
    made = builtin(entry_points=False)
    made.register(FieldCodec(Book(lambda: [one.spec for one in FORMS[form].values()])), first=False)
    return made


def _spec(form: str, name: str) -> FunctionSpec:
    return FORMS[form][name].spec


# riff: frames of the call.


@st.composite
def riff(draw: st.DrawFn, form: str, name: str) -> Talk:
    """A call of riff."""
    spec = _spec(form, name)
    outputs = len(spec.outputs) or (2 if name == "tagged" else name != "sink")
    has_option = bool(spec.spare) and draw(st.booleans())
    values = draw(values_of(spec, len(spec.inputs)))
    names = [one.name for one in (*spec.inputs, *(spec.spare if has_option else ()))] if spec.spare else []
    accepts = [draw(st.sampled_from([JSON, JSON, JSON, "*/*"])) for _ in range(outputs)]
    frames = [_signal(start=pb.StartFrame(expectedContentTypes=accepts, inputNames=names))]
    if has_option:
        frames.append(_data(len(spec.inputs), b'"+"'))
    frames += [_data(index, json.dumps(value).encode()) for index, value in values]
    if draw(st.integers(0, 2)) == 0:
        wrong = draw(st.sampled_from(_WRONG))
        frames.insert(draw(st.integers(0, len(frames))), wrong)
    metadata = Headers({"who": "you"})
    return Talk(lambda: RiffSession(metadata, function=name), tuple(frames), _read_riff)


def _signal(**fields: Any) -> bytes:
    return pb.InputSignal(**fields).SerializeToString()


def _data(index: int, payload: bytes, media_type: str = JSON) -> bytes:
    return _signal(
        data=pb.InputFrame(argIndex=index, payload=payload, contentType=media_type, headers={"h": str(index)})
    )


_WRONG = (
    b"\xff\xff\xff",
    b"",
    _signal(start=pb.StartFrame(expectedContentTypes=[JSON])),
    _signal(start=pb.StartFrame(expectedContentTypes=["image/png"])),
    _data(9, b'"a"'),
    _data(0, b'"a"', "application/x-doom"),
    _data(0, b"{"),
    _data(0, b"12"),
)


def _read_riff(frames: Sequence[bytes]) -> list[Item]:
    found = [pb.OutputSignal.FromString(one).data for one in frames]
    return [(one.resultIndex, (one.payload, one.contentType, sorted(one.headers.items()))) for one in found]


# web: a request of HTTP, whose answer is whole, or a stream.


@st.composite
def web(draw: st.DrawFn, form: str, name: str, accepts: Sequence[str]) -> Talk:
    """A request for a function."""
    spec = _spec(form, name)
    kind = draw(st.sampled_from([JSON, JSON, LINES, "text/plain"] if spec.inputs else [JSON]))
    names = [one.name for one in spec.inputs]
    values = draw(values_of(spec, len(names)))
    if kind == LINES:
        lines = [json.dumps(value if len(names) < 2 else {names[index]: value}) for index, value in values]
        body = "".join(one + "\n" for one in lines)
    elif kind == JSON:
        last = {names[index]: value for index, value in values}
        body = json.dumps(next(iter(last.values())) if len(names) == 1 else last) if last else ""
    else:
        body = "".join(value for _, value in values)
    if draw(st.integers(0, 4)) == 0:
        at = draw(st.integers(0, len(body)))
        body = body[:at] + draw(st.sampled_from(["{", "\n7\n", '"', "x" * _MOST_BYTES])) + body[at:]
    query = "mark=%2B" if spec.spare and draw(st.booleans()) else ""
    headers = [("Content-Type", kind), ("Accept", draw(st.sampled_from(accepts)))]
    head = RequestHead("POST", f"/{name}", query, "1.1", headers)
    chunks = [BodyChunk(one) for one in _cut(draw, body.encode())]
    return Talk(lambda: _web_session(form, name, head), (head, *chunks), _read_web)


def _cut(draw: st.DrawFn, data: bytes) -> list[bytes]:
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=3, unique=True)))
    return [one for one in map(lambda a, b: data[a:b], [0, *cuts], [*cuts, len(data)]) if one]


def _web_session(form: str, name: str, head: RequestHead) -> Any:
    """As the service does: a session of its own for what streams."""
    signature = signature_of(_spec(form, name), _REGISTRIES[form])
    try:
        asked = ask(head, lambda _: signature, most_bytes=_MOST_BYTES)
    except (RefusedError, InvocationError):
        asked = None
    if asked is not None and asked.streams:
        return StreamSession(asked, most_bytes=_MOST_BYTES)
    return HttpSession(lambda _: signature, max_body_bytes=_MOST_BYTES)


def _read_web(frames: Sequence[Any]) -> list[Item]:
    found: list[Item] = []
    for one in frames:
        if isinstance(one, (Response, ResponseHead)):
            body = one.body + b"".join(map(bytes, one.pieces)) if isinstance(one, Response) else None
            found.append((None, (one.status, one.headers, body)))
        else:
            assert isinstance(one, BodyChunk)
            found += [_item(block) for block in one.payload.decode().removesuffix("\n\n").split("\n\n")]
    return found


def _item(block: str) -> Item:
    """An event, or a line; events of several outputs are counted together, so their numbers say nothing new."""
    fields = dict(line.partition(": ")[::2] for line in block.split("\n") if ": " in line and block[0] != "{")
    if "data" in fields:
        event = fields.get("event")
        return ((event if event in ("out0", "out1", "a", "b") else None), (event, fields["data"]))
    try:
        line = json.loads(block)
    except ValueError:
        return (None, block)
    key = next(iter(line)) if isinstance(line, dict) else None
    return ((key if key in ("out0", "out1", "a", "b") else None), block)


# typed: messages of the method that a function is.


@st.composite
def typed(draw: st.DrawFn, form: str, name: str) -> Talk:
    """A call of the method of a function."""
    spec = _spec(form, name)
    (call,) = calls_of([spec])
    is_json = draw(st.booleans())
    slots = [one for one in call.slots if not one.is_option] or list(call.slots)
    values = draw(values_of(spec, len(slots)))
    if call.streams_in:
        messages = [{slots[index]: value} for index, value in values]
    else:
        messages = [{slots[index]: value for index, value in values}]
    option = next((one for one in call.slots if one.is_option), None)
    if option is not None and messages and draw(st.booleans()):
        messages[draw(st.sampled_from([0, 0, -1]))][option] = "+"
    frames = [_json_of(one) if is_json else _proto_of(one) for one in messages]
    if draw(st.integers(0, 3)) == 0:
        wrong = draw(st.sampled_from([b"\xff", b"{", b'{"xs": 7}', b"\x0a\x05a", b"\x0a\x01\xff", b""]))
        frames.insert(draw(st.integers(0, len(frames))), wrong)
    is_many = len(call.outputs) > 1 and call.streams_out

    def read(frames: Sequence[bytes]) -> list[Item]:
        return [
            ((next(iter(json.loads(one))) if is_json else one[:1]) if is_many else 0, one) for one in map(bytes, frames)
        ]

    metadata = Headers({"who": "you"})
    return Talk(lambda: TypedSession(call, metadata, is_json=is_json), tuple(frames), read)


def _proto_of(message: dict[Any, str]) -> bytes:
    return b"".join(bytes_field(slot.number, value.encode()) for slot, value in message.items())


def _json_of(message: dict[Any, str]) -> bytes:
    return json.dumps({slot.field: value for slot, value in message.items()}).encode()


_REGISTRIES = {form: registry_for(form) for form in FORMS}

PROTOCOLS: dict[str, Callable[[str, str], st.SearchStrategy[Talk]]] = {
    "steps": steps,
    "riff": riff,
    "web, whole": lambda form, name: web(form, name, ["*/*", JSON, "text/plain", "image/png"]),
    "web, streamed": lambda form, name: web(form, name, [EVENTS, LINES, LINES + ";q=0.5"]),
    "typed": typed,
}
"""What draws a talk with a function, by the form and the name of that."""
