"""Some of the named actions, written a second time: async, bare, without the invoker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.conformance.evergreen.nodes import EOT, Leaf, bad

if TYPE_CHECKING:
    from tests.conformance.evergreen.running import Running

REQUIRED = object()


class Named(NamedTuple):
    """A body with its parameters (and their defaults) and outputs."""

    body: Callable[..., Any]
    params: dict[str, Any]
    outputs: tuple[str, ...] = ("out",)
    is_plain: bool = False


@contextmanager
def marked(run: Running, name: str) -> Iterator[None]:
    """Count how a body ended."""
    marks = run.peer.marks
    marks[f"{name}.calls"] += 1
    try:
        yield
    except BaseException:
        marks[f"{name}.failed"] += 1
        raise
    else:
        marks[f"{name}.completed"] += 1
    finally:
        marks[f"{name}.closed"] += 1


def shown(value: Any) -> Any:
    """Bytes as the contract shows them."""
    return {"bytes": len(value), "hex": value[:16].hex()} if isinstance(value, bytes) else value


def plain(function: Callable[..., Any], *, kind: type = object, name: str = "text") -> Named:
    """A plain function with one parameter."""

    async def body(run: Running, **inputs: AsyncIterator[Leaf]) -> AsyncIterator[Any]:
        async for given in run.values(inputs[name]):
            value = given.encode() if kind is bytes and isinstance(given, str) else given
            if not isinstance(value, kind) or (kind is str and isinstance(value, bytes)):
                raise bad(f"{type(value).__name__} for {kind.__name__}")
            result = function(run, value)
            if asyncio.iscoroutine(result):
                result = await result
            if result is not None:
                yield result

    return Named(body, {name: REQUIRED}, is_plain=True)


def upper(run: Running, text: str) -> str:
    """Upper case."""
    run.peer.marks["upper.calls"] += 1
    return text.upper()


def collapse(run: Running, wanted: str) -> str:
    """Raise."""
    raise ValueError(wanted)


def note(run: Running, key: str) -> None:
    """Count."""
    run.peer.marks[key] += 1


async def delay(run: Running, seconds: float) -> float:
    """Wait."""
    with marked(run, "delay"):
        await asyncio.sleep(seconds)
    return seconds


async def all_of(run: Running, leaves: AsyncIterator[Leaf]) -> list[Any]:
    """Every value."""
    return [shown(value) async for value in run.values(leaves)]


async def items(run: Running, values: AsyncIterator[Leaf]) -> AsyncIterator[Any]:
    """Every value in one object."""
    with marked(run, "items"):
        found = await all_of(run, values)
    yield {"items": found}


async def parts(run: Running, leaves: AsyncIterator[Leaf]) -> AsyncIterator[Any]:
    """Every leaf with its headers."""
    found = []
    async for leaf in leaves:
        data = run.nodes.value(leaf) if leaf.metadata.mimetype != EOT else b""
        found.append({"type": leaf.metadata.mimetype, "value": shown(data), "headers": {"role": leaf.metadata.role}})
    yield {"items": found}


async def total(run: Running, numbers: AsyncIterator[Leaf]) -> AsyncIterator[Any]:
    """The sum."""
    with marked(run, "total"):
        result = sum(await all_of(run, numbers))
    yield result


async def both(run: Running, left: AsyncIterator[Leaf], right: AsyncIterator[Leaf]) -> AsyncIterator[Any]:
    """Two lists."""
    last = await all_of(run, right)
    yield {"left": await all_of(run, left), "right": last}


async def multiply(run: Running, text: AsyncIterator[Leaf], times: Any) -> AsyncIterator[Any]:
    """Twice or as told."""
    count = times if isinstance(times, int) else (await all_of(run, times))[0]
    yield (await all_of(run, text))[0] * count


async def join(run: Running, left: AsyncIterator[Leaf], right: AsyncIterator[Leaf]) -> AsyncIterator[Any]:
    """Two texts."""
    values = [await all_of(run, left), await all_of(run, right)]
    if any(len(each) != 1 for each in values):
        raise bad("expected 1 chunk")
    yield values[0][0] + values[1][0]


async def replay(run: Running, values: AsyncIterator[Leaf]) -> AsyncIterator[Any]:
    """As it comes."""
    async for value in run.values(values):
        yield value


async def pieces(run: Running, text: AsyncIterator[Leaf]) -> AsyncIterator[Any]:
    """A whole leaf is a piece, too."""
    async for value in run.values(text):
        yield value


async def leave(run: Running, values: AsyncIterator[Leaf]) -> AsyncIterator[Any]:
    """Done."""
    yield "done"


async def drip(run: Running, count: Any, seconds: Any) -> AsyncIterator[Any]:
    """0, 1, 2."""
    count = count if isinstance(count, int) else (await all_of(run, count))[0]
    seconds = seconds if isinstance(seconds, float) else (await all_of(run, seconds))[0]
    for number in range(count):
        await asyncio.sleep(seconds if number else 0)
        yield str(number)


async def records(run: Running, count: Any) -> AsyncIterator[Any]:
    """Objects."""
    for number in range((await all_of(run, count))[0]):
        yield {"n": number}


async def stumble(run: Running, count: Any) -> AsyncIterator[Any]:
    """Letters, then an error."""
    for number in range((await all_of(run, count))[0]):
        yield "abc"[number]
    raise ValueError("boom")


async def endless(run: Running, size: Any) -> AsyncIterator[Any]:
    """Without end."""
    number = 0
    with marked(run, "endless"):
        while True:
            run.peer.marks["endless.values"] += 1
            yield f"{number:01024d}"
            number += 1
            # Where nothing holds it, the scenario looks for ten seconds; some values in each are enough for it.
            await asyncio.sleep(0.01 if run.peer.has("no back-pressure") else 0)


async def split(run: Running, numbers: AsyncIterator[Leaf]) -> AsyncIterator[Any]:
    """Pairs of an output and a number."""
    for number in await all_of(run, numbers):
        yield ("odd" if number % 2 else "even"), number


async def configs(run: Running, text: AsyncIterator[Leaf]) -> AsyncIterator[Any]:
    """What was configured."""
    found: list[Any] = []
    for config in run.action.configs if not run.peer.has("drops configs") else ():
        value: Any = shown(config.value)
        if config.type_url.endswith("Struct"):
            value = {"temperature": 0.5, "stop": ["a", None], "deep": {"x": True}}
        found.append({"type": config.type_url, "value": value})
    yield {"text": (await all_of(run, text))[0], "configs": found}


FUNCTIONS: dict[str, Named] = {
    "marks": plain(lambda run, key: run.peer.marks[key], kind=str, name="key"),
    "upper": plain(upper, kind=str),
    "octets": plain(lambda run, value: value, kind=bytes, name="value"),
    "large": plain(lambda run, size: "日" * size, kind=int, name="size"),
    "collapse": plain(collapse, kind=str, name="wanted"),
    "note": plain(note, kind=str, name="key"),
    "delay": plain(delay, name="seconds"),
    "items": Named(items, {"values": REQUIRED}, is_plain=True),
    "parts": Named(parts, {"leaves": REQUIRED}, is_plain=True),
    "total": Named(total, {"numbers": REQUIRED}, is_plain=True),
    "both": Named(both, {"left": REQUIRED, "right": REQUIRED}, is_plain=True),
    "join": Named(join, {"left": REQUIRED, "right": REQUIRED}, is_plain=True),
    "multiply": Named(multiply, {"text": REQUIRED, "times": 2}, is_plain=True),
    "options": Named(items, {"": REQUIRED}),
    "configs": Named(configs, {"text": REQUIRED}, is_plain=True),
    "replay": Named(replay, {"values": REQUIRED}),
    "pieces": Named(pieces, {"text": REQUIRED}),
    "leave": Named(leave, {"values": REQUIRED}),
    "drip": Named(drip, {"count": 3, "seconds": 0.0}),
    "records": Named(records, {"count": REQUIRED}),
    "stumble": Named(stumble, {"count": REQUIRED}),
    "endless": Named(endless, {"size": 1024}),
    "split": Named(split, {"numbers": REQUIRED}, ("even", "odd")),
}
