"""The sync form of each simulated function; see `tests.simulate.bodies`.

What an async function does by ``asyncio.sleep``, its twin does by `rest`: the world that runs it moves its clock, and
lets its caller and the sweeper do something meanwhile.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from invoker import Context, function
from invoker.author.prepare import prepare_function
from invoker.errors import InputCancelled
from invoker.message import Message, Output

Strings = Iterator[str]

_rest: list[Callable[[int], None]] = []


@contextmanager
def resting(rest: Callable[[int], None]) -> Iterator[None]:
    """Within this context, this is what a function calls that rests for some ticks."""
    _rest.append(rest)
    try:
        yield
    finally:
        _rest.pop()


def rest(ticks: int) -> None:
    _rest[-1](ticks)


def echo(xs: Strings) -> Strings:
    yield from xs


def slowly(xs: Strings) -> Strings:
    try:
        for x in xs:
            rest(2)
            yield x
    finally:
        rest(1)


def shout(x: str) -> str:
    return x + "!"


def join(a: str, b: str) -> str:
    return f"{a}|{b}"


def count(xs: Strings) -> int:
    return len(list(xs))


def sink(xs: Strings) -> None:
    for _ in xs:
        pass


def second_first(a: Strings, b: Strings) -> Strings:
    yield from b
    yield from a


def first_two(xs: Strings) -> Strings:
    left = 2
    for x in xs:
        yield x
        left -= 1
        if not left:
            return


def raises_after_two(xs: Strings) -> Strings:
    left = 2
    for x in xs:
        yield x
        left -= 1
        if not left:
            break
    raise ValueError("on purpose")


def raises_when_called(xs: Strings) -> int:
    raise SystemExit("on purpose")


def two(a: Strings, b: Strings) -> tuple[Strings, Strings]:
    return echo(a), slowly(b)


def one_ends_early(a: Strings, b: Strings) -> tuple[Strings, Strings]:
    return first_two(a), echo(b)


def one_raises(a: Strings, b: Strings) -> tuple[Strings, Strings]:
    return raises_after_two(a), echo(b)


def shared(xs: Strings) -> tuple[Strings, Strings]:
    return echo(xs), slowly(xs)


def tagged(xs: Strings) -> Iterator[Output]:
    for number, x in enumerate(xs):
        yield Output(number % 2, Message(x, {"n": str(number)}))


def stray(xs: Strings) -> Iterator[Output]:
    for x in xs:
        yield Output(0, x)
    yield Output(7, "nobody has this output")


def misfit(xs: Strings) -> Strings:
    yield from xs
    yield object()  # type: ignore[misc]


def deaf(xs: Strings) -> Strings:
    for _ in range(3):
        try:
            yield from xs
            return
        except GeneratorExit:
            raise
        except BaseException as error:
            if not isinstance(error, InputCancelled):
                rest(1)
            yield "late"


def swallows(xs: Strings) -> Strings:
    while True:
        try:
            x = next(xs)
        except StopIteration:
            return
        except Exception:
            continue
        yield x


def source() -> Strings:
    for number in range(5):
        yield str(number)


@function(outputs=("a", "b"))
def sends(xs: Strings, ctx: Context) -> None:
    for x in xs:
        ctx.outputs["a"].send(x)
        ctx.outputs[1].send(x + "!")


@function(outputs=("a", "b"))
def ends_one(xs: Strings, ctx: Context) -> None:
    for number, x in enumerate(xs):
        if not number:
            ctx.outputs["a"].send(x)
            ctx.outputs["a"].end()
        ctx.outputs["b"].send(x)


def marked(xs: Strings, mark: str = "-") -> Strings:
    for x in xs:
        yield x + mark


def spell(x: str) -> Strings:
    yield from x


def drops_out(xs: Strings, ctx: Context) -> Strings:
    for x in xs:
        yield x
        rest(1)
        if ctx.cancelled:
            return


def ticks() -> Strings:
    for number in itertools.count():
        rest(1)
        yield str(number)


_TWINS = (
    *(echo, slowly, shout, join, count, sink, second_first, first_two, raises_after_two, raises_when_called, two),
    *(one_ends_early, one_raises, shared, tagged, stray, misfit, deaf, swallows, source, sends, ends_one, marked),
    *(spell, drops_out, ticks),
)

TWINS = [prepare_function(twin).function for twin in _TWINS]
