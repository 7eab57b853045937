"""`HostScope`: what a tool can reach by its context: the tools of this process, and those of its session's host.

A tool of this process is called by the same pipeline as from outside (`ToolCall`): its arguments are validated, it
counts against the limits of the session, and observers are notified of it, as `nested`. A name that no local tool has
is looked up among the tools of the host; observers are notified of these calls as `callback`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import ANY, pack, unpack
from invoker.context import Argument, Context
from invoker.core.stepping import StepSession
from invoker.core.steps import CallStep, Cancel, Emitted, Event, Open
from invoker.core.store import Question
from invoker.errors import Cancelled, InvocationError, NestedError
from invoker.execution.bodies.runner import later
from invoker.execution.bodies.values import encode_argument
from invoker.execution.driver import Driver
from invoker.execution.nested.inline import Inline, check_caller
from invoker.execution.nested.inside import Inside
from invoker.execution.nested.order import check_depth, is_iterator, labelled
from invoker.execution.nested.scope import CatalogScope, runs_inline
from invoker.message import EMPTY, METADATA, Headers, Message
from invoker.protocols.toolbridge.agents import Running
from invoker.protocols.toolbridge.errors import BridgeError, Kind, translated
from invoker.protocols.toolbridge.host_sessions import HostSession, HostSessions, space_of
from invoker.protocols.toolbridge.service.callback import PREFIX, HostTools
from invoker.protocols.toolbridge.service.hostreplies import readable
from invoker.protocols.toolbridge.toolcall import CORRELATION, MOST_ITEMS, Asked, ToolCall, correlation_of
from invoker.protocols.toolbridge.tools import Tool

HOPS: Final = "x-dspex-hops"
_MOST_HOPS: Final = 4
_LATER_S: Final = 0.2
"""Seconds by which the host's time limit is longer than its caller's, so that the error of the limit is ours
(T-054)."""
_DIGITS: Final = 5


class HostScope:
    """The scope of the tools of one host session.

    Args:
        host_sessions: The host sessions, with the local tools.
        driver: Runs the local tools.
        session: The session whose host is called back.
    """

    carries = ANY

    __slots__ = ("_catalog", "_driver", "_host_sessions", "_session")

    def __init__(self, host_sessions: HostSessions, driver: Driver, session: HostSession) -> None:
        self._host_sessions = host_sessions
        self._driver = driver
        self._session = session
        self._catalog = CatalogScope(driver)

    async def call(
        self, caller: Context, name: str, args: Sequence[Argument], kwargs: Mapping[str, Argument], *, streams: bool
    ) -> AsyncGenerator[Message[bytes], None]:
        """Call a tool of this process, or otherwise one of the host; see `invoker.context.Scope`."""
        check_depth(caller, name, self._driver.settings.depth)
        if self._is_no_tool(caller, name):
            found = self._catalog.call(caller, name, args, kwargs, streams=streams)
        else:
            found = await self._tool(caller, name, args, kwargs, streams=streams)
        async with contextlib.aclosing(found) as messages:
            async for message in messages:
                yield message

    async def _tool(
        self, caller: Context, name: str, args: Sequence[Argument], kwargs: Mapping[str, Argument], *, streams: bool
    ) -> AsyncGenerator[Message[bytes], None]:
        given = [await _collected(one) for one in args]
        named = {key: await _collected(one) for key, one in kwargs.items()}
        asked, tool = self._asked(caller, name, given, named), self._local(name)
        if tool is not None:
            return self._nested(caller, tool, asked, streams=streams)
        return self._remote(caller, asked, streams=streams)

    def here(
        self, caller: Context, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, streams: bool
    ) -> Iterator[Message[bytes]] | None:
        """Call a sync tool of this process in this thread."""
        if self._is_no_tool(caller, name):
            return self._catalog.here(caller, name, args, kwargs, streams=streams)
        tool = self._local(name)
        if tool is None or not runs_inline(self._driver.engine.catalog.find(tool.function).spec):
            return None
        check_depth(caller, name, self._driver.settings.depth)
        given = [_payload(encode_argument(_listed(one), index, ANY)) for index, one in enumerate(args)]
        named = {key: _payload(encode_argument(_listed(one), key, ANY)) for key, one in kwargs.items()}
        return self._inline(caller, tool, self._asked(caller, name, given, named), streams=streams)

    async def ask(self, caller: Context, question: Question) -> Any:
        """Ask the store about the space of the session, whatever space the question names."""
        own = msgspec.structs.replace(question, space=space_of(self._session.id))
        return await self._catalog.ask(caller, own)

    # Local tools.

    def _local(self, name: str) -> Tool | None:
        found: Tool | None = None if name.startswith(PREFIX) else self._host_sessions.tools.find(name)
        return found

    def _is_no_tool(self, caller: Context, name: str) -> bool:
        """Whether a name is that of a function that cannot be a tool.

        Other functions can call it nevertheless; agents cannot.
        """
        return name in self._host_sessions.tools.left_out and _via(caller) == "nested"

    def _asked(self, caller: Context, name: str, args: Sequence[bytes], kwargs: Mapping[str, bytes]) -> Asked:
        parent = _call_of(caller)
        context: Mapping[str, str] = _context_of(caller) if parent is None else parent.asked.context
        correlation = correlation_of(caller.metadata, context) if parent is None else parent.correlation_id
        metadata = Headers({**caller.metadata, CORRELATION: correlation})
        return Asked(self._session.id, name, args, kwargs, context=context, metadata=metadata)

    def _begun(self, call: ToolCall, caller: Context) -> tuple[Open, Sequence[CallStep]]:
        """The steps of a call that was not refused."""
        opened, *rest = call.begin(self._session) or (None,)
        if not isinstance(opened, Open):
            raise AssertionError("a call that begins opens its invocation") if call.error is None else call.error
        return msgspec.structs.replace(opened, caller=caller), rest

    async def _nested(
        self, caller: Context, tool: Tool, asked: Asked, *, streams: bool
    ) -> AsyncGenerator[Message[bytes], None]:
        call = ToolCall(self._host_sessions, asked, _via(caller))
        with _telling(caller, call):
            opened, rest = self._begun(call, caller)
            session = StepSession() if streams else _Collecting(call)
            inside = Inside(session, self._driver, deadline=caller.deadline)
            caller.hold(inside)
            try:
                inside.give((opened, *rest))
                async for event in inside:
                    yield self._labelled(tool, event)
                if not streams:
                    yield Message(call.result(), EMPTY, ANY)
            finally:
                caller.drop(inside)
                inside.leave()

    def _inline(self, caller: Context, tool: Tool, asked: Asked, *, streams: bool) -> Iterator[Message[bytes]]:
        call, driver = ToolCall(self._host_sessions, asked, _via(caller)), self._driver
        with _telling(caller, call):
            opened, rest = self._begun(call, caller)
            try:
                invocation = driver.engine.open(opened, deadline=caller.deadline, is_early=True)
            except InvocationError as error:
                driver.refused(opened, error)
                raise
            body = Inline(driver, invocation, rest, {})
            with contextlib.closing(body.run()) as events:
                for event in events:
                    if streams:
                        yield self._labelled(tool, event)
                        continue
                    for step in call.emitted(event):
                        assert isinstance(step, Cancel)
                        body.break_off(step.error)
            if not streams:
                yield Message(call.result(), EMPTY, ANY)

    def _labelled(self, tool: Tool, event: Emitted) -> Message[bytes]:
        return labelled(self._driver.engine.catalog.find(tool.function).spec, event)

    # Tools of the host.

    async def _remote(self, caller: Context, asked: Asked, *, streams: bool) -> AsyncGenerator[Message[bytes], None]:
        """Call a tool of the host; its values are passed on unchanged (T-172)."""
        call = ToolCall(self._host_sessions, asked, "callback")
        with _telling(caller, call):
            tools, spec = await self._found(asked)
            rpc = _Rpc()
            caller.hold(rpc)
            given = tools.call(
                spec, asked.args, asked.kwargs,
                deadline=caller.deadline, metadata=_headers(asked), begun=rpc.begun,
            )  # fmt: skip
            values: list[bytes] = []
            try:
                async with contextlib.aclosing(given) as messages:
                    async for message in messages:
                        if streams:
                            yield Message(readable(message.payload), message.headers, ANY)
                            continue
                        _collect(values, message)
            finally:
                caller.drop(rpc)
            if not streams:
                yield Message(readable(_joined(values, is_one=not tools.gives_stream(spec))), EMPTY, ANY)

    async def forward(self, call: ToolCall, within_s: float) -> bytes:
        """Call a tool of the host for a caller outside of a function (T-171).

        Args:
            call: The call, which has begun; it is finished here only if the caller leaves.
            within_s: How long it may take.

        Returns:
            The result of the tool, as a serialised ``Any``; of a stream, the list of its values.

        Raises:
            InvocationError: The host reported an error, or the session is gone.
        """
        asked = msgspec.structs.replace(
            call.asked, metadata=Headers({**call.asked.metadata, CORRELATION: call.correlation_id})
        )
        until = time.monotonic() + within_s + _LATER_S
        rpc, ended, values = _Rpc(), list[InvocationError](), list[bytes]()

        def end(error: InvocationError) -> None:
            ended.append(error)
            rpc.abandon()

        call.cancel = end
        try:
            async with asyncio.timeout(within_s):
                tools, spec = await self._found(asked)
                given = tools.call(
                    spec, asked.args, asked.kwargs,
                    deadline=until, metadata=_headers(asked), begun=rpc.begun,
                )  # fmt: skip
                async with contextlib.aclosing(given) as messages:
                    async for message in messages:
                        _collect(values, message)
            return _joined(values, is_one=not tools.gives_stream(spec))
        except TimeoutError:
            limit_ms = round(within_s * 1000)
            raise BridgeError(
                Kind.TIMEOUT, f"the host's tool took longer than {limit_ms} ms", timeout_ms=limit_ms
            ) from None
        except InvocationError as error:
            raise (ended or [error])[0] from None
        except BaseException:
            if ended:  # grpc.aio raises this because this process has cancelled the call
                raise ended[0] from None
            call.finish(Cancelled("its caller is gone"))
            raise

    async def _found(self, asked: Asked) -> tuple[HostTools, pb.ToolSpec]:
        """The host's tools, and the requested one."""
        tools = await self._tools()
        spec = None if tools is None else tools.find(asked.tool_id)
        if tools is None or spec is None:
            raise BridgeError(
                Kind.TOOL_NOT_FOUND,
                f"there is no tool {asked.tool_id!r}, neither here nor at the session's host",
                tool_id=asked.tool_id,
            )
        return tools, spec

    async def _tools(self) -> HostTools | None:
        """The host's tools; listed now if another process made the session."""
        session = self._session
        if session.callback is None and session.request.callback_address and self._host_sessions.callbacks is not None:
            self._host_sessions.meet(
                session, await self._host_sessions.callbacks.connect(session.id, session.request.callback_address)
            )
        tools: HostTools | None = session.callback
        return tools


class _Collecting(StepSession):
    """The session of a call that keeps its result itself; nothing is sent."""

    def __init__(self, call: ToolCall) -> None:
        self._call = call

    def deliver(self, event: Event) -> Sequence[CallStep]:
        """Pass emitted values to the call, and all other events on as usual."""
        return self._call.emitted(event) if type(event) is Emitted else super().deliver(event)


class _Rpc:
    """The rpc of a call of the host's tool; it is cancelled when its caller is over."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._cancel: Callable[[], object] | None = None
        self._is_over = False

    def begun(self, cancel: Callable[[], object]) -> None:
        """Note that the rpc has begun, and that ``cancel`` ends it; it is cancelled at once if the call is over."""
        self._cancel = cancel
        if self._is_over:
            cancel()

    def abandon(self) -> None:
        """End the rpc, because its caller is over; may be called from any thread."""
        later(self._loop, self._end)

    def _end(self) -> None:
        self._is_over = True
        if self._cancel is not None:
            self._cancel()


def _collect(values: list[bytes], message: Message[bytes]) -> None:
    """Collect one value of a host's tool, for a caller that wants all values at once."""
    if METADATA not in message.headers:
        values.append(message.payload)
    if len(values) > MOST_ITEMS:
        raise BridgeError(
            Kind.EXHAUSTED, f"the tool gave more than {MOST_ITEMS} items; take them by ctx.stream",
            code="too_many_chunks", limit=MOST_ITEMS,
        )  # fmt: skip


def _joined(values: Sequence[bytes], *, is_one: bool) -> bytes:
    return values[0] if is_one else pack([unpack(readable(one)) for one in values])


@contextlib.contextmanager
def _telling(caller: Context, call: ToolCall) -> Iterator[None]:
    """Finish a call when its block ends, with the error of the block if it raised; raise errors as `NestedError`."""
    try:
        yield
    except InvocationError as error:
        call.finish(error)
        check_caller(caller, error)
        raise _nested_error(call.error or error) from error
    except BaseException:
        call.finish(Cancelled("the caller reads no more values, or its invocation is over"))
        raise
    call.finish(None)


def _nested_error(error: InvocationError) -> NestedError:
    told = translated(error)
    return NestedError(told.status, told.detail, kind=told.kind.value, details=told.details)


def _headers(asked: Asked) -> dict[str, str]:
    """The metadata for a call of the host, with only the needed metadata of the caller (T-172, T-175).

    Raises:
        BridgeError: The call has passed between programs too often.
    """
    text = asked.metadata.get(HOPS) or "0"
    hops = int(text) + 1 if text.isascii() and text.isdigit() and len(text) < _DIGITS else _MOST_HOPS + 1
    if hops > _MOST_HOPS:
        raise BridgeError(
            Kind.EXHAUSTED,
            f"the call has gone from one program to another {text[:_DIGITS]} times; the limit is {_MOST_HOPS}",
            code="hops", limit=_MOST_HOPS,
        )  # fmt: skip
    return {HOPS: str(hops), CORRELATION: asked.metadata[CORRELATION]}


def _context_of(caller: Context) -> Mapping[str, str]:
    """The context of an agent's run, which its tools get (T-069)."""
    return next((one.context for one in caller.configs if isinstance(one, Running)), EMPTY)


def _via(caller: Context) -> str:
    """The ``via`` of a call of a local tool (T-148)."""
    return "agent" if any(isinstance(one, Running) for one in caller.configs) else "nested"


def _call_of(caller: Context) -> ToolCall | None:
    """The tool call in which a function runs."""
    one: Context | None = caller
    while one is not None:
        for config in one.configs:
            if isinstance(config, ToolCall):
                return config
        one = one.caller
    return None


def _listed(argument: Any) -> Any:
    """Collect an iterator into a list, since an argument of a tool is one value."""
    return list(argument) if is_iterator(argument) else argument


async def _collected(argument: Argument) -> bytes:
    if isinstance(argument, Message):
        return _payload(argument)
    return pack([unpack(_payload(one)) async for one in argument])


def _payload(message: Message[bytes]) -> bytes:
    """An argument in the form that tools get; if it is bytes with a media type, the bytes."""
    return message.payload if message.media_type == ANY else pack(message.payload)
