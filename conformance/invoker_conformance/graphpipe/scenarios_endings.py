"""How inferences end: outputs that differ from their declaration, exceptions, clients that leave, configs."""

from __future__ import annotations

from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.graphpipe.requests import Request, infer
from invoker_conformance.graphpipe.tensors import FLOAT32, FLOAT64, INT64, Tensor, floats, numbers, strings
from invoker_conformance.scenario import Failure, scenario

_STREAMED = 3


def word(value: str) -> Request:
    """Make a request with a text as its only input."""
    return infer(strings(value.encode(), shape=()))


def count(value: int) -> Request:
    """Make a request with an integer as its only input."""
    return infer(numbers(INT64, (), (value,)))


def pause(seconds: float) -> Request:
    """Make a request with a number of seconds as its only input."""
    return infer(numbers(FLOAT64, (), (seconds,)))


@scenario("GT-40", "G-065", "G-064", "G-081", function="collapse")
async def function_raises(asker: Asker) -> None:
    """An exception is E14 with its text, and neither a traceback nor a path."""
    for text in ("boom", "日本", "100% of it", "two\nlines"):
        await asker.refuses(word(text), 14, mentions=[text])
    await asker.survives()


@scenario("GT-40", "G-065", "G-101", function=("collapse", "mirror"))
async def function_exits(asker: Asker) -> None:
    """A function that would leave the process fails its own request only."""
    await asker.refuses(word("exit"), 14)
    await asker.gives(infer(floats(1)), floats(1), function="mirror")


@scenario("G-083", "G-065", function="collapse")
async def long_messages(asker: Asker) -> None:
    """A message is cut to 4096 bytes, between characters."""
    for text in ("x" * 100_000, "日" * 20_000, "a" + "😀" * 5000):
        answer = await asker.ask(word(text))
        asker.has_error(answer, 14)
        if "\ufffd" in (message := asker.checked(answer).errors[0][1]):
            raise Failure(repr(message[-40:]), "a message that is cut between characters", answer.sent)


@scenario("GT-40", "G-066", function="promised")
async def broken_promises(asker: Asker) -> None:
    """An output of another type, rank or size than the declared one is a bad output."""
    await asker.gives(word("right"), floats(1, 0, 0, 1, shape=(2, 2)))
    for kind in ("type", "rank", "size"):
        await asker.refuses(word(kind), 18)


@scenario("GT-41", "G-072", function="chunks")
async def values_are_joined(asker: Asker) -> None:
    """Several values of an output with an open first size are joined into one tensor, in their order."""
    for rows in (1, _STREAMED, 100):
        values = [each for row in range(rows) for each in (row, 10 * row)]
        await asker.gives(count(rows), floats(*values, shape=(rows, 2)))


@scenario("GT-41", "G-071", "G-066", function=("chunks", "fixed"))
async def number_of_values(asker: Asker) -> None:
    """No value at all is a bad output, and so are several values if the first size is fixed."""
    await asker.gives(count(1), floats(0, 0), function="fixed")
    for function, rows in (("fixed", 0), ("fixed", 2), ("fixed", _STREAMED), ("chunks", 0)):
        await asker.refuses(count(rows), 18, function=function)


@scenario("GT-41", "G-075", "G-071", function=("fixed", "marks"))
async def endless_output_is_closed(asker: Asker) -> None:
    """A function that yields values without end is closed if only one value is allowed."""
    watch = await asker.watch("fixed.calls", "fixed.closed", "fixed.completed")
    await asker.refuses(count(-1), 18)
    await watch.reaches("fixed.closed", 1)
    await watch.stays("fixed.completed")
    await watch.stays("fixed.calls", 1)


@scenario("GT-42", "G-073", function="doubled")
async def rows(asker: Asker) -> None:
    """A function that is fed by rows gets each row of a batch, and its results are stacked: 0, 1 and 1,000 rows."""
    for number in (0, 1, 1000):
        batch = floats(*range(2 * number), shape=(number, 2))
        await asker.gives(infer(batch), floats(*(2 * each for each in range(2 * number)), shape=(number, 2)))
    await asker.refuses(infer(floats(1, 2)), 9)


@scenario("GT-42", "G-073", "G-066", function="dropping")
async def rows_that_are_lost(asker: Asker) -> None:
    """A function that gives fewer rows than it got makes a bad output."""
    kept = floats(1, 1, 2, 2, shape=(2, 2))
    await asker.gives(infer(kept), kept)
    await asker.refuses(infer(floats(1, 1, -2, 2, 3, 3, shape=(3, 2))), 18)


@scenario("GT-43", "G-013", "G-075", function=("delay", "marks"))
async def client_leaves(asker: Asker) -> None:
    """A client that closes its connection during an inference cancels it."""
    watch = await asker.watch("delay.calls", "delay.closed", "delay.completed")
    async with asker.connect() as connection:
        await asker.send(connection, pause(60), ", then the end of the connection")
        await watch.reaches("delay.calls", 1, within_s=asker.timeout_s)
    await watch.reaches("delay.closed", 1)
    await watch.stays("delay.completed")


@scenario("GT-45", "G-031", function="spoken")
async def config_as_it_came(asker: Asker) -> None:
    """Any bytes of a config reach the function, also zeros and invalid UTF-8; no bytes mean no config."""
    for config in (b"text", b"a\0b\0", b"\xff\xfe", b"{", bytes(range(256)), b"x" * 100_000):
        await asker.gives(infer(config=config), strings(config, shape=()))
    for empty in (infer(), infer(config=b"")):
        await asker.gives(empty, strings(b"", shape=()))


@scenario("GT-45", "G-031", "G-080", function=("word", "mirror"))
async def config_as_json(asker: Asker) -> None:
    """A function that asks for JSON gets it; a config that is no JSON is a bad config. Others take any config."""
    await asker.gives(infer(config=b'{"word": "\\u00e9"}'), strings("é".encode(), shape=()))
    for config in (b"{", b"[1]", b"\xff", b'{"word": "a"}\0', b'{"word": NaN}', b"[" * 100_000):
        await asker.refuses(infer(config=config), 17)
    await asker.gives(infer(floats(1), config=b"{"), floats(1), function="mirror")


@scenario("G-064", "G-082", function="mirror")
async def tensors_or_errors(asker: Asker) -> None:
    """A request whose first tensor is right and whose second is wrong is answered with an error alone."""
    wrong = Tensor(FLOAT32, (2,), bytes(4))
    await asker.refuses(infer(floats(1), wrong, names=("x", "")), 4, 10)
