"""StreamTool as a pure session: which chunks become of what a function gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from google.protobuf import any_pb2

from invoker import Field
from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import ANY, pack, unpack
from invoker.core.steps import Answered, Ask, Cancel, Close, EndInput, Feed, Finished, Open, Send, Step
from invoker.core.store import Look, Reason, Refused
from invoker.errors import Cancelled, FunctionError, Status
from invoker.message import METADATA, Message
from invoker.protocols.toolbridge.errors import BridgeError
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.protocols.toolbridge.stream import StreamTool
from tests.protocols.toolbridge.calls import emitted, host_sessions_with
from tests.protocols.toolbridge.hosts import TestHostSessions, a_space, known


class Streamed:
    """One rpc and its chunks."""

    def __init__(
        self, host_sessions: TestHostSessions | None = None, tool: str = "count", *args: object, **fields: Any
    ) -> None:
        self.host_sessions = host_sessions or host_sessions_with()
        self.session = StreamTool(self.host_sessions)
        self.chunks: list[pb.ToolStreamChunk] = []
        given = [any_pb2.Any.FromString(pack(one)) for one in args or (3,)]
        request = pb.ToolStreamRequest(**{"session_id": "s1", "tool_id": tool, "args": given, **fields})
        self.others = self.take(self.session.receive(request.SerializeToString()))

    def take(self, steps: Sequence[Step]) -> list[Step]:
        """Keep the chunks; the other steps."""
        self.chunks += [pb.ToolStreamChunk.FromString(one.frame) for one in steps if isinstance(one, Send)]
        return [one for one in steps if not isinstance(one, Send)]

    def give(self, value: Any, index: int = 0) -> list[Step]:
        return self.take(self.session.deliver(emitted(value, index)))

    def finish(self, error: Any = None) -> list[Step]:
        return self.take(self.session.deliver(Finished("tool", error)))

    @property
    def kinds(self) -> list[str | None]:
        return [one.WhichOneof("content") for one in self.chunks]


@pytest.fixture
def streamed() -> Streamed:
    host_sessions = host_sessions_with()
    known(host_sessions)
    return Streamed(host_sessions, stream_id="q")


def value(chunk: pb.ToolStreamChunk) -> Any:
    return unpack(chunk.data.SerializeToString())


def told(chunk: pb.ToolStreamChunk) -> tuple[str, Any]:
    return chunk.metadata.key, unpack(chunk.metadata.value.SerializeToString())


def test_T076_chunks_are_numbered_and_end_once(streamed):
    """With the id of the request; the rpc ends with OK."""
    assert [type(one) for one in streamed.others] == [Open, Feed, EndInput]
    for one in range(3):
        streamed.give(one)
    assert streamed.finish() == [Close()]
    assert [one.sequence for one in streamed.chunks] == [0, 1, 2, 3]
    assert {one.stream_id for one in streamed.chunks} == {"q"}
    assert streamed.kinds == ["data", "data", "data", "complete"]
    assert [value(one) for one in streamed.chunks[:3]] == [0, 1, 2]
    assert streamed.finish() == []
    assert streamed.session.receive(b"more") == ()


def test_T076_a_stream_without_an_id_gets_one():
    """Another one each time."""
    host_sessions = host_sessions_with()
    known(host_sessions)
    ids = set()
    for _ in range(2):
        streamed = Streamed(host_sessions)
        streamed.finish()
        ids.add(streamed.chunks[0].stream_id)
    assert len(ids) == 2
    assert {len(one) for one in ids} == {32}


def test_T077_only_data_is_counted(streamed):
    """Metadata is not."""
    streamed.give(b"x" * 70_000)
    streamed.finish()
    complete = streamed.chunks[-1].complete
    assert complete.total_chunks == 2
    assert complete.HasField("metrics")


def test_T077_a_stream_of_nothing_is_complete_at_once(streamed):
    """Its only chunk has the number 0."""
    streamed.finish()
    (chunk,) = streamed.chunks
    assert (chunk.sequence, chunk.WhichOneof("content"), chunk.complete.total_chunks) == (0, "complete", 0)


def test_T078_an_error_comes_behind_all_data(streamed):
    """And the rpc ends with OK."""
    for one in range(3):
        streamed.give(one)
    assert streamed.finish(FunctionError("boom")) == [Close()]
    assert streamed.kinds == ["data", "data", "data", "error"]
    assert (streamed.chunks[-1].error.type, streamed.chunks[-1].error.message) == ("InternalError", "boom")


@pytest.mark.parametrize(("tool", "args", "kind"), [("nope", (), "ToolNotFound"), ("count", ("x",), "ValidationError")])
def test_T078_a_refusal_is_an_error_chunk(tool, args, kind):
    """The only one."""
    host_sessions = host_sessions_with()
    known(host_sessions)
    streamed = Streamed(host_sessions, tool, *args)
    assert streamed.others == [Close()]
    (chunk,) = streamed.chunks
    assert chunk.error.type == kind
    assert len(host_sessions.ended) == 1
    assert host_sessions.ended[0].via == "stream"


def test_T078_an_unknown_session_is_an_error_chunk():
    """Once the store has said so; one that it knows goes on."""
    streamed = Streamed()
    assert streamed.others == [Ask("session", Look("toolbridge/s1"))]
    assert streamed.take(streamed.session.deliver(Answered("session", Refused(Reason.EXPIRED)))) == [Close()]
    assert streamed.chunks[0].error.details["code"] == "expired"
    streamed = Streamed()
    steps = streamed.take(streamed.session.deliver(Answered("session", a_space())))
    assert [type(one) for one in steps] == [Open, Feed, EndInput]


@pytest.mark.parametrize(
    ("size", "chunk_size", "parts"),
    [
        (200_000, 0, [65_536, 65_536, 65_536, 3_392]),
        (200_000, 65_536, [65_536, 65_536, 65_536, 3_392]),
        (10, 4, [4, 4, 2]),
        (8, 4, [4, 4]),
    ],
)
def test_T080_large_bytes_are_split(size, chunk_size, parts):
    """Their length is told first."""
    host_sessions = host_sessions_with()
    known(host_sessions)
    streamed = Streamed(host_sessions, config=pb.StreamConfig(chunk_size=chunk_size))
    data = bytes(range(256)) * (size // 256 + 1)
    streamed.give(data[:size])
    assert told(streamed.chunks[0]) == ("bytes_total", size)
    pieces = [value(one) for one in streamed.chunks[1:]]
    assert [len(one) for one in pieces] == parts
    assert b"".join(pieces) == data[:size]


@pytest.mark.parametrize("chunk_size", [0, 1000, 2**31 - 1])
@pytest.mark.parametrize("stream_id", ["", "q" * 5000])
@pytest.mark.parametrize("size", [9_999, 10_000, 65_537, 1_000_000])
def test_T080_bytes_of_any_size_are_split(size, stream_id, chunk_size):
    """Also those that no message could take; each frame is one that is sent, whatever size was asked for."""
    host_sessions = host_sessions_with(settings=BridgeSettings(message_bytes=10_000))
    known(host_sessions)
    streamed = Streamed(host_sessions, stream_id=stream_id, config=pb.StreamConfig(chunk_size=chunk_size))
    data = bytes(range(256)) * (size // 256 + 1)
    assert streamed.give(data[:size]) == []
    assert told(streamed.chunks[0]) == ("bytes_total", size)
    assert b"".join(value(one) for one in streamed.chunks[1:]) == data[:size]
    assert max(one.ByteSize() for one in streamed.chunks) <= 10_000
    (cancel,) = streamed.give("x" * 10_001)
    assert cancel.error.details["code"] == "result_too_large"


@pytest.mark.parametrize("item", [b"x" * 65_536, "x" * 200_000, ["x" * 200_000]])
def test_T080_other_values_are_not_split(streamed, item):
    """However large; nor are bytes of the size of a chunk."""
    streamed.give(item)
    assert streamed.kinds == ["data"]
    assert value(streamed.chunks[0]) == item


@pytest.mark.parametrize(("enabled", "most"), [(True, 0), (False, 10_485_760)])
def test_T081_T082_the_request_says_whether_the_function_waits(enabled, most):
    """Otherwise ten megabytes may wait to be sent."""
    host_sessions = host_sessions_with()
    known(host_sessions)
    config = pb.StreamConfig(backpressure_enabled=enabled)
    assert Streamed(host_sessions, config=config).session.ahead_bytes == most


@pytest.mark.parametrize("name", ["chunk_size", "buffer_size"])
def test_a_negative_config_is_refused(name):
    """By its name."""
    host_sessions = host_sessions_with()
    known(host_sessions)
    streamed = Streamed(host_sessions, config=pb.StreamConfig(**{name: -1}))
    assert streamed.chunks[0].error.details["field"] == f"config.{name}"


def test_T084_metadata_come_in_place(streamed):
    """They are no item."""
    streamed.give(1)
    event = emitted("half")
    message = Message(event.message.payload, {METADATA: "progress"}, ANY)
    streamed.take(streamed.session.deliver(type(event)("tool", 0, message)))
    streamed.give(2)
    streamed.finish()
    assert streamed.kinds == ["data", "metadata", "data", "complete"]
    assert told(streamed.chunks[1]) == ("progress", "half")
    assert streamed.chunks[-1].complete.total_chunks == 2


def test_T086_a_change_of_the_output_is_told(streamed):
    """Before the item that comes from another one."""
    for item, index in ((1, 0), (2, 1), (3, 1), (4, 0)):
        streamed.give(item, index)
    assert streamed.kinds == ["data", "metadata", "data", "data", "metadata", "data"]
    assert [told(streamed.chunks[one]) for one in (1, 4)] == [("resultIndex", 1), ("resultIndex", 0)]


def test_T087_a_stream_may_take_five_minutes(streamed):
    """The session's default is for calls."""
    assert streamed.others[0].timeout_s == 300.0
    known(streamed.host_sessions, "s2", default_timeout_ms=5)
    assert Streamed(streamed.host_sessions, session_id="s2").others[0].timeout_s == 300.0


def test_T049_T062_an_item_that_may_not_be_sent_ends_the_stream():
    """One that breaks a rule, and one that is too large."""

    def roots(x: int) -> Annotated[int, Field(ge=0)]:
        return x

    host_sessions = host_sessions_with(roots, settings=BridgeSettings(message_bytes=1000))
    known(host_sessions)
    for item, code in ((-1, "result_invalid"), ("x" * 2000, "result_too_large")):
        streamed = Streamed(host_sessions, "roots")
        (cancel,) = streamed.give(item)
        assert isinstance(cancel, Cancel)
        assert isinstance(cancel.error, BridgeError)
        assert cancel.error.details["code"] == code
        assert streamed.finish(cancel.error) == [Close()]
        assert streamed.kinds == ["error"]


def test_a_caller_that_is_gone_gets_no_chunk(streamed):
    """The status is all that is left."""
    (close,) = streamed.finish(Cancelled("gone"))
    assert isinstance(close, Close)
    assert streamed.chunks == []


def test_a_request_that_is_none_is_refused():
    """By the status of the rpc."""
    for steps in (StreamTool(host_sessions_with()).receive(b"\xff"), StreamTool(host_sessions_with()).half_close()):
        (close,) = steps
        assert isinstance(close, Close)
        assert close.error is not None
        assert close.error.status in (Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED)
