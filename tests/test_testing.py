"""The harness for authors' tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import NamedTuple

import pytest

from invoker import Context, Message, NestedError
from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.errors import DecodeError, FunctionError, SpecError, Status
from invoker.testing import Harness, TestServer

pytest_plugins: list[str] = []


def square(x: int) -> int:
    return x * x


def repeat(words: Iterator[str], counts: Iterator[int]) -> Iterator[str]:
    for word, count in zip(words, counts, strict=False):
        yield from [word] * count


async def halves(xs: AsyncIterator[float]) -> AsyncIterator[float]:
    async for x in xs:
        yield x / 2


class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[int]


def split(xs: Iterator[int]) -> Split:
    values = list(xs)
    return Split(iter(values[::2]), iter(values[1::2]))


def shout(message: Message[str]) -> Message[str]:
    return Message(message.payload.upper(), headers={"from": message.headers.get("who", "nobody")})


def test_values_in_values_out():
    """Sync, async, several inputs: one line each."""
    assert Harness(square).run([1, 2, 3]) == [1, 4, 9]
    assert Harness(repeat).run(["a", "b"], [2, 1]) == ["a", "a", "b"]
    assert Harness(halves).run([1, 3]) == [0.5, 1.5]


def test_several_outputs_and_their_messages():
    """Each output has its own values."""
    result = Harness(split).invoke(range(5))
    assert result.error is None
    assert (result.values(0), result.values(1)) == ([0, 2, 4], [1, 3])


def test_messages_carry_headers_and_media_types():
    """Headers go in and come out; the media type is negotiated."""
    (made,) = Harness(shout).invoke([Message("hi", headers={"Who": "me"})], accept="text/plain").messages()
    assert (made.payload, made.headers["from"], made.media_type) == ("HI", "me", "text/plain")


def test_errors_are_what_a_caller_would_be_told():
    """``run`` raises it, ``invoke`` gives it with what came before."""

    def boom(xs: Iterator[int]) -> Iterator[int]:
        yield next(xs)
        raise ValueError("boom")

    with pytest.raises(FunctionError, match="ValueError: boom"):
        Harness(boom).run([1])
    result = Harness(boom).invoke([1])
    assert result.values() == [1]
    assert result.error.status is Status.UNKNOWN
    with pytest.raises(DecodeError):
        Harness(square).run(["x"])


def test_raw_frames_go_in_as_they_are():
    """For tests of the protocol itself."""
    start = pb.InputSignal(start=pb.StartFrame(expectedContentTypes=["application/json"])).SerializeToString()
    assert str(Harness(square).frames(start, start).error).startswith("Invoker: Protocol Violation")


def test_a_function_that_cannot_be_served_cannot_be_tested():
    """The same sentence that serving it would give."""

    def broken(xs: int) -> int:
        yield xs

    with pytest.raises(SpecError, match="generator"):
        Harness(broken)


def test_a_context_manager_is_entered_and_left_once():
    """Hooks and ``with`` are part of the run."""
    marks = []

    class Model:
        def __enter__(self):
            marks.append("enter")
            return self

        def __call__(self, x: int) -> int:
            return x + 1

        def __exit__(self, *exc: object) -> None:
            marks.append("exit")

    assert Harness(Model()).run([1, 2]) == [2, 3]
    assert marks == ["enter", "exit"]


def test_a_real_server_is_started_and_stopped():
    """On loopback, with both transports, and with its own log when it does not start."""
    server = TestServer("functions.square:square")
    assert server.grpc.startswith("127.0.0.1:")
    assert server.http.startswith("127.0.0.1:")
    assert server.close() == 0
    with pytest.raises(RuntimeError, match="did you mean 'square'"):
        TestServer("functions.square:squar")


_TALKS = """
import os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
for number in range(2000):
    os.write(1, b"grpc=x http=y %d\\n" % number)
    time.sleep(0.0001)
signal.sigwait([signal.SIGTERM])
"""


class Talker(TestServer):
    """Writes many lines, one after another."""

    def _started(self, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", _TALKS], stdout=self._log)


def test_a_log_is_read_while_the_server_writes():
    """What was there stays there: both have the same place in the same file, which only the server may move."""
    server, read = Talker("any"), ""
    while not read.endswith(" 1999\n"):
        before, read = read, server.log()
        assert read.startswith(before)
    assert server.close() == 0
    assert read == "".join(f"grpc=x http=y {number}\n" for number in range(2000))


def test_other_functions_are_given_or_faked():
    """By the name under which the function calls them; a fake may take whatever it is given."""

    def caller(x: int, ctx: Context) -> list[object]:
        return [ctx.call("square", x), ctx.call("elixir_tool", key="a", n=x), list(ctx.stream("many", 2))]

    def many(n: int) -> Iterator[int]:
        yield from range(n)

    calls = {"square": square, "elixir_tool": lambda **given: sorted(given), "many": many}
    assert Harness(caller, calls=calls).run([3]) == [[9, ["key", "n"], [0, 1]]]


def test_other_functions_are_given_by_names():
    """A list of them has no names; the error says what is expected."""
    with pytest.raises(TypeError, match="calls= must be a dict of functions by name, and is a list"):
        Harness(square, calls=[square])  # type: ignore[arg-type]


def test_a_function_that_is_not_given_is_not_there():
    def caller(x: int, ctx: Context) -> int:
        return int(ctx.call("square", x))

    with pytest.raises(NestedError, match="no function is named 'square'"):
        Harness(caller).run([3])
