"""One function behind two servers: in one its calls may run without a session, in the other each takes a session.

The second one is the specification: a client and an operator cannot tell the two apart.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from invoker.core.invocation import Invocation
from invoker.core.unary import UnaryInvocation
from invoker.telemetry.live import Live
from invoker.telemetry.logs import ending
from tests.transports.served import Served, until

CHANGING = re.compile(
    rb"(?i)(?<=date: )[^\r]*|(?<=-)[0-9a-f]{16}(?=-0[01]\r)|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|20\d\d-\S+Z"
)
"""What differs between two responses to the same request: the time, the number of a span, the id of an event."""


def as_async(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, declared ``async def``."""

    @functools.wraps(function)
    async def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return called


@dataclass
class Noted:
    """A server, and what it says about the invocations that end.

    Attributes:
        served: The server.
        kinds: The classes of the invocations.
        told: The fields of the line in the log, of the list of invocations, and of the context, of each.
    """

    served: Served
    kinds: set[type[Invocation]] = field(default_factory=set)
    told: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.served.driver.engine.on_close.append(self._ended)

    def _ended(self, invocation: Invocation) -> None:
        self.kinds.add(type(invocation))
        engine, context, error = self.served.driver.engine, invocation.context, invocation.error
        live = Live(engine)
        live._closed(invocation)
        cause = None if error is None else error.__cause__
        told = {
            **ending(invocation),
            **live._ended[-1].told,
            "cause": (type(cause), str(cause)),
            "key": invocation.key,
            "names": (context.function, context.input_names, context.output_names, context.accepts),
            "has_deadline": context.deadline is not None,
            "metadata": {name: one for name, one in context.metadata.items() if name not in ("x-http-span", "host")},
            "blocked": invocation.blocked,
        }
        changing = ("run", "invocation", "id", "seconds", "sinceS", "peer", "span_id")
        self.told.append({name: value for name, value in told.items() if name not in changing})

    async def ended(self, count: int) -> None:
        """Wait until so many invocations have ended."""
        await until(lambda: len(self.told) >= count)


@dataclass
class Two:
    """Two servers of the same functions.

    Attributes:
        unary: Runs calls without a session where that is possible.
        session: Never does.
    """

    unary: Noted
    session: Noted

    def __iter__(self) -> Iterator[Noted]:
        return iter((self.unary, self.session))

    async def same(self, parts: Sequence[bytes], *, waits_for_100: bool = False) -> bytes:
        """Send a request to both, compare all that can be seen, and return the response."""
        answers = [await _exchange(one.served, parts, waits_for_100=waits_for_100) for one in self]
        assert answers[0] == answers[1]
        for one in self:
            assert not one.served.driver.engine.running
        assert self.unary.told == self.session.told
        return answers[0]

    def finish(self) -> None:
        """Compare what the engines have counted, and check that each server has done what it is for."""
        first, second = (replace(one.served.driver.engine.counters, seconds=0.0) for one in self)
        assert first == second
        assert UnaryInvocation in self.unary.kinds
        assert self.session.kinds == {Invocation}
        for one in self:
            driver = one.served.driver
            assert [*driver.conversations, *driver.direct, *driver.leaving] == []


@asynccontextmanager
async def two(*functions: Callable[..., Any], **about: Any) -> AsyncIterator[Two]:
    """Serve functions twice; as `Served.at`."""
    async with Served.at(*functions, **about) as unary, Served.at(*functions, **about) as session:
        engine = session.driver.engine
        plan = engine.plan
        engine.plan = lambda command: replace(plan(command), is_unary=False)  # type: ignore[method-assign]
        yield Two(Noted(unary), Noted(session))


async def _exchange(served: Served, parts: Sequence[bytes], *, waits_for_100: bool) -> bytes:
    """Send the parts in packets of their own, and return all that comes."""
    async with served.wire() as wire:
        for index, part in enumerate(parts):
            await wire.send(part)
            if index == 0 and waits_for_100:
                begun = await wire.reader.readline()
                if b" 100 " not in begun:
                    return begun
                assert await wire.reader.readline() == b"\r\n"
            await asyncio.sleep(0)
        begun = await wire.reader.read(1)  # a client that ends its direction is waited for no longer than 0.1 s
        if wire.writer.can_write_eof():
            wire.writer.write_eof()
        return CHANGING.sub(b"", begun + await wire.ended())


@contextmanager
def lines() -> Iterator[list[str]]:
    """The lines of the log within the block: level, text, and the fields that say which invocation it is about."""
    found: list[str] = []

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            about = [str(getattr(record, name, "")) for name in ("function", "invocation", "detail")]
            raised = "" if record.exc_info is None else repr(record.exc_info[1])
            found.append(" ".join((record.levelname, record.getMessage(), *about, raised)))

    logger, handler = logging.getLogger("invoker"), Collecting()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
