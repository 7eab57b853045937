"""Options over real sockets, on each driver: what is given is used or refused, never dropped (R-164 to R-168)."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest

from invoker._pb.riff import riff_rpc_pb2 as pb
from tests.conftest import SLOW
from tests.serving import Served, serving

pytestmark = pytest.mark.timeout(20)

TEXT = "text/plain"
SERVERS = {
    "direct": ("tests.e2e.option_functions",),
    "loop": ("tests.e2e.option_functions_async",),
    "aio sync": ("tests.e2e.option_functions", "--grpc-driver", "aio"),
    "aio async": ("tests.e2e.option_functions_async", "--grpc-driver", "aio"),
}


@pytest.fixture(scope="module", params=list(SERVERS))
def server(request: pytest.FixtureRequest) -> Iterator[Served]:
    """A server on each driver."""
    with serving(*SERVERS[request.param], "--no-http") as served:
        yield served


@dataclass
class Ended:
    """How a call ended."""

    values: list[str] = field(default_factory=list)
    code: grpc.StatusCode = grpc.StatusCode.OK
    detail: str = ""


class Caller:
    """One call, frame by frame."""

    def __init__(self, served: Served, function: str, *, names: tuple[str, ...] = ()) -> None:
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._channel = grpc.insecure_channel(served.grpc, (("grpc.use_local_subchannel_pool", 1),))
        start = pb.StartFrame(expectedContentTypes=[TEXT], inputNames=names, outputNames=["out"] if names else [])
        self._frames.put(pb.InputSignal(start=start).SerializeToString())
        method = self._channel.stream_stream("/streaming.Riff/Invoke")
        frames: Any = iter(self._frames.get, None)
        self.answers: Any = method(frames, metadata=[("invoker-function", function)], timeout=10 * SLOW)

    def send(self, index: int, text: str) -> Caller:
        frame = pb.InputFrame(payload=text.encode(), contentType=TEXT, argIndex=index)
        self._frames.put(pb.InputSignal(data=frame).SerializeToString())
        return self

    def next(self) -> str:
        return str(pb.OutputSignal.FromString(next(self.answers)).data.payload, "utf-8")

    def end(self, *, half_close: bool = True) -> Ended:
        if half_close:
            self._frames.put(None)
        ended = Ended()
        try:
            ended.values.extend(str(pb.OutputSignal.FromString(one).data.payload, "utf-8") for one in self.answers)
        except grpc.RpcError as error:
            ended.code, ended.detail = error.code(), error.details()  # type: ignore[attr-defined]
        self._frames.put(None)
        self._channel.close()
        return ended


def call(served: Served, function: str, *frames: tuple[int, str], names: tuple[str, ...] = ()) -> Ended:
    """All frames at once, then the half-close."""
    caller = Caller(served, function, names=names)
    for index, text in frames:
        caller.send(index, text)
    return caller.end()


def violates(ended: Ended, *words: str) -> bool:
    is_violation = ended.code is grpc.StatusCode.UNKNOWN and "Invoker: Protocol Violation" in ended.detail
    return is_violation and all(word in ended.detail for word in words)


def test_R164_what_is_given_to_a_parameter_with_a_default_is_used(server):
    """`greet(name="world")` greets Bob; options are used in either style, by name and by index."""
    assert call(server, "greet", (0, "Bob"), (0, "Ann")).values == ["hello Bob", "hello Ann"]
    assert call(server, "scale", (1, "10"), (0, "1"), (0, "2")).values == ["10.0", "20.0"]
    assert call(server, "scale", (0, "1"), (1, "5"), names=("in", "shift")).values == ["7.0"]
    assert call(server, "join", (1, "+"), (0, "a"), (0, "b")).values == ["begin +", "a+b"]
    assert call(server, "scale", (0, "3")).values == ["6.0"]


def test_R165_labels_are_free_and_further_names_are_those_of_options(server):
    """They may come in any order, and the k-th name is argIndex k; what is no option's name is a violation."""
    assert call(server, "scale", (0, "1"), (1, "5"), (2, "3"), names=("x", "shift", "factor")).values == ["8.0"]
    assert call(server, "greet", (0, "Bob"), names=("anything",)).values == ["hello Bob"]
    assert call(server, "spell", (0, "x"), (1, "z"), names=("in", "third")).values == ["xbz"]
    assert violates(call(server, "scale", names=("in", "factr")), "'factr'", "did you mean 'factor'?")
    assert violates(call(server, "scale", names=("in", "shift", "shift")), "'shift'", "twice")
    assert violates(call(server, "scale", names=("in", "shift", "factor", "more")), "'more'", "1 to 3", "4")
    assert violates(call(server, "topk", names=("items",)), "1", "2 to 3")


def test_R166_an_announced_option_is_awaited_until_it_comes(server):
    """The input may come first, and by more than the high-water mark of unread frames."""
    many = [(0, "w")] * 1000
    assert call(server, "join", *many, (1, "+"), (2, "3"), names=("in", "sep", "most")).values == ["begin +", "w+w+w"]
    assert call(server, "scale", (0, "1"), (0, "2"), (1, "10"), names=("in", "factor")).values == ["10.0", "20.0"]


def test_R166_an_announced_option_that_never_comes_keeps_its_default(server):
    """The half-close tells that it does not come."""
    assert call(server, "join", (0, "a"), (0, "b"), names=("in", "sep")).values == ["begin ,", "a,b"]


def test_R166_a_function_starts_at_once_when_no_option_is_announced(server):
    """Its first output comes before any input was sent."""
    caller = Caller(server, "join", names=("in",))
    assert caller.next() == "begin ,"
    assert caller.send(0, "a").end().values == ["a"]


def test_R166_without_names_an_option_must_come_before_the_inputs(server):
    """Later it is a violation that names the option."""
    assert violates(call(server, "scale", (0, "1"), (1, "10")), "'factor'", "option", "inputNames")
    caller = Caller(server, "join").send(0, "a")
    assert caller.next() == "begin ,"
    assert violates(caller.send(1, "+").end(), "'sep'")


def test_R166_a_stream_that_says_something_first_does_not_wait_for_ever(server):
    """Its caller has sent no names, and may wait for that; options are refused from then on."""
    caller = Caller(server, "join")
    assert caller.next() == "begin ,"
    assert caller.send(0, "a").end().values == ["a"]
    caller = Caller(server, "join").send(1, "+")
    assert caller.next() == "begin +"
    assert violates(caller.send(2, "1").end(), "'most'")


def test_R167_an_option_is_one_value_for_the_whole_call(server):
    """A second frame of it is a violation."""
    assert violates(call(server, "scale", (1, "1"), (1, "2"), (0, "1")), "'factor'", "expected 1 frame, got 2 or more")
    ended = call(server, "join", (1, "+"), (1, "-"), (0, "a"), names=("in", "sep"))
    assert violates(ended, "'sep'", "expected 1 frame, got 2 or more")


def test_R032_R167_zero_frames_mean_one_call_with_the_defaults(server):
    """If every parameter has one; with it the options that were given are used."""
    assert call(server, "greet").values == ["hello world"]
    assert call(server, "greet", names=("in",)).values == ["hello world"]
    assert call(server, "spell").values == ["abc"]
    assert call(server, "spell", (1, "x"), names=("in", "second")).values == ["axc"]


def test_R168_surplus_frames_of_a_single_value_are_refused_with_the_count(server):
    """The function is not called for the first of them, unless it has ended before the second one has come."""
    for _ in range(20):
        ended = call(server, "gen", (0, "one prompt"), (0, "another"))
        if ended.values != ["one", "prompt"]:
            break
    assert violates(ended, "'prompt'", "expected 1 frame, got 2 or more")
    assert ended.values == []
    assert violates(call(server, "topk", (1, "1"), (1, "2"), (0, "a")), "'k'", "expected 1 frame, got 2 or more")
    assert call(server, "gen", (0, "one prompt")).values == ["one", "prompt"]


def test_R168_a_function_of_values_starts_although_its_caller_stays(server):
    """Nobody has to half-close to get the stream."""
    caller = Caller(server, "gen").send(0, "one prompt")
    assert (caller.next(), caller.next()) == ("one", "prompt")
    assert caller.end(half_close=False) == Ended()


def test_R135_R168_an_input_that_got_nothing_is_an_empty_stream(server):
    """A window without any frame ends with OK, as R-135 wants."""
    assert call(server, "join").values == ["begin ,", ""]
    assert call(server, "gen") == Ended()
    assert call(server, "topk") == Ended()
    assert call(server, "topk", (1, "3")) == Ended()
    assert call(server, "scale", (1, "3")) == Ended()


def test_R168_a_value_that_is_missing_beside_others_is_refused(server):
    """What was given is not dropped."""
    ended = call(server, "topk", (0, "a"))
    assert ended.code is grpc.StatusCode.UNKNOWN
    assert "'k'" in ended.detail
