"""`CatalogScope`: what every function can reach by its context: the other functions of its process, and the store.

A nested call is treated like any other call: it is admitted, negotiated, limited, counted and logged. It never waits
for room: without room it fails at once, because the room may be taken by the callers themselves.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any

from invoker.author.spec import FunctionSpec, ResultShape
from invoker.codecs.exact import ACCEPTS
from invoker.context import Argument, Context
from invoker.core.stepping import StepSession
from invoker.core.steps import Emitted
from invoker.core.store import Question
from invoker.core.variables import OWN
from invoker.errors import InvocationError, Status, VariableError
from invoker.execution.asker import Asker
from invoker.execution.driver import Driver
from invoker.execution.nested.inline import Inline, check_caller
from invoker.execution.nested.inside import Inside
from invoker.execution.nested.order import KEY, Order, labelled, nested_error
from invoker.execution.placement import Placement, placement_of
from invoker.message import Message


class CatalogScope:
    """The scope in which the functions of one process can call each other.

    Args:
        driver: Runs them.
    """

    carries = ACCEPTS

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def call(
        self, caller: Context, name: str, args: Sequence[Argument], kwargs: Mapping[str, Argument], *, streams: bool
    ) -> AsyncGenerator[Message[bytes], None]:
        """Invoke a function, and give its result; see `invoker.context.Scope`."""
        order = self._order(caller, name, args, kwargs)
        inside = Inside(StepSession(), self._driver, deadline=caller.deadline)
        caller.hold(inside)
        try:
            inside.give((order.open, *order.given()))
            for index, values in order.iterators.items():
                inside.read(KEY, index, values)
            collected, count = list[Emitted](), 0
            async for event in inside:
                if streams:
                    yield labelled(order.spec, event)
                    continue
                collected.append(event)
                count += len(event.message.payload)
                order.check_size(count)
            if not streams:
                yield order.result(collected)
        except InvocationError as error:
            check_caller(order.open.caller, error)
            raise nested_error(error) from error
        finally:
            caller.drop(inside)
            inside.leave()

    def here(
        self, caller: Context, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, streams: bool
    ) -> Iterator[Message[bytes]] | None:
        """Run the function in this thread, if it is sync and has at most one output."""
        order = self._order(caller, name, args, kwargs)
        return self._inline(order, streams=streams) if runs_inline(order.spec) else None

    async def ask(self, caller: Context, question: Question) -> Any:  # noqa: ARG002 - another scope needs the caller
        """Ask the store.

        Raises:
            VariableError: The question is about the host session's own space, and there is no host session.
        """
        if question.space == OWN:
            raise VariableError(
                Status.FAILED_PRECONDITION,
                "variables belong to a session of the tool bridge, and this function was not called in one",
                code="no_session",
            )
        asker = Asker(self._driver.store)
        try:
            return await asker.ask(question)
        finally:
            asker.leave()

    def _order(self, caller: Context, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Order:
        driver = self._driver
        return Order(driver.engine, caller, name, args, kwargs, most_depth=driver.settings.depth)

    def _inline(self, order: Order, *, streams: bool) -> Iterator[Message[bytes]]:
        driver = self._driver
        try:
            try:
                invocation = driver.engine.open(order.open, deadline=order.open.caller.deadline, is_early=True)
            except InvocationError as error:
                driver.refused(order.open, error)
                raise
            events = Inline(driver, invocation, order.given(), order.iterators).run()
            if streams:
                try:
                    for event in events:
                        yield labelled(order.spec, event)
                finally:
                    events.close()
                return
            collected, count = list[Emitted](), 0
            for event in events:
                collected.append(event)
                count += len(event.message.payload)
                order.check_size(count)
            yield order.result(collected)
        except InvocationError as error:
            check_caller(order.open.caller, error)
            raise nested_error(error) from error


def runs_inline(spec: FunctionSpec) -> bool:
    """Whether a function can run in the thread of its caller: it is sync, is not bounded in time, and gives one output.

    A function that may have to be abandoned before it returns needs a thread or a process of its own.
    """
    if placement_of(spec) is Placement.LOOP or spec.isolation or spec.bounds.timeout_s:
        return False
    return spec.call.result not in (ResultShape.SEVERAL, ResultShape.UNKNOWN) or len(spec.outputs) == 1
