"""`ToolCall`: the steps of every tool call, made by an rpc, a batch, an agent or another tool.

Theory. A call goes through these checks in order, and the first that refuses it ends it::

    session, tool, decode, bind, types, rules     `begin`; a call refused here counts against no limit (T-051)
    limits of the session                         `begin`
    limits of the tool, run                       the engine, by the steps that `begin` gives
    result                                        `emitted`

``begin`` returns the steps ``Open Feed* EndInput``. The protocol session that sends them passes each message to
``emitted``, and the end to ``finish``. After that the place in the host session is free, and the observers of
`HostSessions` were called. The call is in `Open.configs`, so the end of its invocation finishes it even if the protocol
session has ended.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final
from uuid import uuid4

import msgspec

from invoker.codecs.anyvalue import pack, unpack
from invoker.core.steps import Await, CallStep, Cancel, Emitted, EndInput, Feed, Open
from invoker.errors import InvocationError
from invoker.errors.wording import traceback_of
from invoker.message import EMPTY, METADATA, Headers
from invoker.protocols.toolbridge.arguments import Binding
from invoker.protocols.toolbridge.errors import ENDS_RPC, BridgeError, Kind, translated
from invoker.protocols.toolbridge.host_sessions import LARGE, HostSession, HostSessions, NoPlace, Operation
from invoker.protocols.toolbridge.tools import Tool

CORRELATION: Final = "x-snakepit-correlation-id"
"""The key of the metadata by which hosts correlate calls that belong together (T-175)."""

MOST_ITEMS: Final = 1000
"""The largest number of items of a stream that is collected into a list (T-067)."""

PROTOCOL: Final = "toolbridge"
"""The name of the protocol in each `Open` of a tool call, by which the engine finds the observer of its end."""

_CONTEXT: Final = 1000
"""How many entries the context of a call may have."""

_NOTHING: Final = pack(None)
_NO_STEPS: Final = ()
_NO_KWARGS: Final[Mapping[str, bytes]] = MappingProxyType({})


class Asked(msgspec.Struct, frozen=True):
    """The request of a caller to run a tool.

    Attributes:
        session_id: The id of the session in which the tool should run.
        tool_id: The id or the name of the tool.
        args: The arguments by position, each a serialised ``Any``.
        kwargs: The keyword arguments by name.
        request_id: Identifies duplicates; may be empty.
        timeout_ms: The time limit; 0: the caller gives none.
        context: Values that the function can read (T-069).
        metadata: The metadata of the rpc, for the function.
    """

    session_id: str
    tool_id: str
    args: Sequence[bytes] = ()
    kwargs: Mapping[str, bytes] = _NO_KWARGS
    request_id: str = ""
    timeout_ms: int = 0
    context: Mapping[str, str] = EMPTY
    metadata: Headers = EMPTY


class ToolCall(Operation):
    """One call of a tool.

    Args:
        host_sessions: The host sessions.
        asked: The request of the caller.
        via: How the call was made: ``execute``, ``stream``, ``batch``, ``agent``, ``nested`` or ``callback``.
        key: The id of its invocation, unique within the conversation.

    Attributes:
        default_ms: The time limit if the caller, the session and the tool have none (T-054).
        bound: The tool with its bound arguments, or an error, if the arguments were read before `begin`.
        began_ns: When the call was made, on the clock of ``time.perf_counter_ns``.
        cpu_ns: The processor time of the function; 0 if it is not known.
        entry: The entry of `Results` that is notified of the end, if the session detects duplicates by request ids.
        error: The error with which the call ended; None while it runs and after a success.
        is_over: Whether the call has ended.
        items: The values of the function, by output.
        memory_bytes: The peak memory of its child process; 0: there was no child process.
        most_ms: The upper bound of the time limit, even if the caller asks for more; 0: none.
        session: The host session in which it runs; None if there is none.
        tool: The tool that is called; None if there is no such tool.
        took_s: How many seconds the call took.
    """

    __slots__ = (
        *(
            "bound",
            "_correlation",
            "_is_large",
            "_last",
            "_size",
            "asked",
            "began_ns",
            "cpu_ns",
            "default_ms",
            "host_sessions",
            "entry",
            "error",
            "is_over",
            "items",
            "key",
            "memory_bytes",
            "most_ms",
        ),
        *("took_s", "tool", "via"),
    )

    def __init__(self, host_sessions: HostSessions, asked: Asked, via: str, key: str = "tool") -> None:
        self.began_ns = time.perf_counter_ns()
        self.host_sessions = host_sessions
        self.asked = asked
        self.via = via
        self.default_ms = host_sessions.settings.timeout_ms
        self.most_ms = 0
        self.key = key
        self.session = None
        self.is_tool = True
        self.cancel = None
        self.tool: Tool | None = None
        self.entry: Any = None
        self.error: InvocationError | None = None
        self.is_over = False
        self.items: list[list[bytes]] = [[]]
        self.took_s = 0.0
        self.cpu_ns = self.memory_bytes = self._size = 0
        self._is_large = False
        self._last: Emitted | None = None
        self._correlation = ""
        self.bound: tuple[Tool, Binding | BridgeError] | None = None

    def aside(self, size: int, key: str = "bound") -> Await | None:
        """Return a step that reads the arguments in another thread before `begin`.

        None if the arguments are small, or were already read.

        Args:
            size: The size of the request, in bytes.
            key: The key of the answer.
        """
        self._is_large = size > LARGE
        aside = self.host_sessions.aside
        if not self._is_large or aside is None or self.bound is not None or not aside.is_due():
            return None
        return Await(key, partial(aside.run, self.bind))

    def bind(self, other: ToolCall | None = None) -> None:
        """Bind the arguments, in any thread; their errors are reported by `begin`.

        Args:
            other: A call that has already bound the same arguments.
        """
        if other is not None:
            self.bound = other.bound
        elif (tool := self.host_sessions.tools.find(self.asked.tool_id)) is not None:
            try:
                self.bound = tool, tool.bind(self.asked.args, self.asked.kwargs)
            except BridgeError as error:
                self.bound = tool, error.kept()

    def begin(self, session: HostSession, *, is_shared: bool = False) -> Sequence[CallStep]:
        """Begin the call in a host session.

        Args:
            session: The session.
            is_shared: Whether other conversations may join the invocation by its key.

        Returns:
            The steps; empty if the call was refused, and so has ended.

        Raises:
            NoPlace: The session has reached its limit of tool calls, and this is a call of a batch, which waits; any
                other call is refused.
        """
        try:
            return self._begin(session, is_shared=is_shared)
        except NoPlace as error:
            if self.via == "batch":
                raise
            self.finish(error)
            return _NO_STEPS
        except BridgeError as error:
            self.finish(error)
            return _NO_STEPS

    def _begin(self, session: HostSession, *, is_shared: bool) -> Sequence[CallStep]:
        self.session = session
        asked, key = self.asked, self.key
        self._check_asked()
        tool = self.tool = self.host_sessions.tools.find(asked.tool_id)
        if tool is None:
            raise self._missing()
        names, feeds = self._binding(tool)
        timeout_ms = asked.timeout_ms or (session.timeout_ms if self.via != "stream" else 0)
        timeout_ms = timeout_ms or (0 if tool.source.bounds.timeout_s else self.default_ms)
        if self.most_ms:
            timeout_ms = min(timeout_ms or self.most_ms, self.most_ms)
        self.host_sessions.begin(self)
        if self._is_large and not self.host_sessions.keeps_arguments:
            self._forget()
        opened = Open(
            key,
            tool.function,
            tool.accepts,
            metadata=asked.metadata,
            bound=names,
            configs=(self, dict(asked.context)) if asked.context else (self,),
            is_shared=is_shared,
            timeout_s=timeout_ms / 1000 if timeout_ms else None,
            party=session.id,
            scope=session.scope,
            protocol=PROTOCOL,
        )
        return (opened, *[Feed(key, index, message) for index, message in feeds], EndInput(key))

    def _binding(self, tool: Tool) -> Binding:
        found, self.bound = self.bound, None
        if found is None or found[0] is not tool:
            return tool.bind(self.asked.args, self.asked.kwargs)
        bound = found[1]
        if isinstance(bound, BridgeError):
            raise bound
        return bound

    def begin_at_host(self, session: HostSession) -> float:
        """Begin the call of a tool of the session's host, which is not an invocation of this process.

        Returns:
            How many seconds the call may take (T-054).

        Raises:
            BridgeError: The call was refused; the caller passes this error to `finish`.
        """
        self.session, self.via = session, "callback"
        self._check_asked()
        self.host_sessions.begin(self)
        return (self.asked.timeout_ms or session.timeout_ms or self.default_ms) / 1000

    def _check_asked(self) -> None:
        asked = self.asked
        if asked.timeout_ms < 0:
            raise BridgeError(
                Kind.VALIDATION,
                f"timeout_ms is {asked.timeout_ms}; expected a number that is not negative, where 0 is the default",
                code="range", field="timeout_ms",
            )  # fmt: skip
        if len(asked.context) > _CONTEXT:
            text = f"context has {len(asked.context)} entries and exceeds the limit of {_CONTEXT}"
            raise BridgeError(Kind.VALIDATION, text, code="range", field="context")

    def _missing(self) -> BridgeError:
        name, tools = self.asked.tool_id, self.host_sessions.tools
        near, host = tools.near(name), self.session.callback if self.session is not None else None
        text = f"there is no tool {name!r}"
        if host is not None and host.find(name) is not None:
            text += " here; it is one of the host, to be called by ExecuteTool, or by functions (ctx.call)"
        elif near:
            text += f"; did you mean {near!r}?"
        return BridgeError(Kind.TOOL_NOT_FOUND, text, tool_id=name)

    def emitted(self, event: Emitted) -> Sequence[CallStep]:
        """Keep a value of the function.

        Several conversations may share the call and pass the same event; the value is kept once.
        """
        if self.is_over or event is self._last or (event.message.headers and METADATA in event.message.headers):
            return _NO_STEPS
        self._last = event
        payload, index = event.message.payload, event.index
        self._size += len(payload)
        items = self.items
        while len(items) <= index:
            items.append([])
        items[index].append(payload)
        tool = self.tool
        if self._size > self.host_sessions.settings.message_bytes or tool is None or tool.check is not None:
            try:
                self.check(payload, self._size)
            except BridgeError as error:
                return (Cancel(self.key, error),)
        if len(items[index]) > MOST_ITEMS:
            text = f"the tool gave more than {MOST_ITEMS} items; call it by StreamTool"
            return (Cancel(self.key, BridgeError(Kind.EXHAUSTED, text, code="too_many_chunks", limit=MOST_ITEMS)),)
        return _NO_STEPS

    @property
    def correlation_id(self) -> str:
        """The correlation id of the call: the caller's, or a new one (T-175)."""
        self._correlation = self._correlation or correlation_of(self.asked.metadata, self.asked.context)
        return self._correlation

    def check(self, payload: bytes, size: int = 0) -> None:
        """Check one value of the function.

        Args:
            payload: The value as a serialised ``Any``.
            size: The size of the message that carries the value; 0: the value is not sent.

        Raises:
            BridgeError: The value is too large to be sent (T-062), or breaks a rule of the tool (T-049).
        """
        size, most = size or len(payload), self.host_sessions.settings.message_bytes
        if size > most:
            text = f"the result has {size} bytes and exceeds the limit of {most} bytes"
            raise BridgeError(Kind.EXHAUSTED, text, code="result_too_large", size=size, limit=most)
        if self.tool is not None and self.tool.check is not None:
            self.tool.check(payload)

    def finish(self, error: InvocationError | None) -> None:
        """Finish the call, without an error if it is None; only the first call of this method counts."""
        if self.is_over:
            return
        self.is_over = True
        self.took_s = (time.perf_counter_ns() - self.began_ns) * 1e-9
        if error is not None:
            self.error = error if isinstance(error, ENDS_RPC) else self._told(error).kept()
        if self.session is not None:
            self.host_sessions.end(self)
        if self.entry is not None:
            self.entry.over()
        for observer in self.host_sessions.observers:
            observer(self)
        if self._is_large:
            self._forget()

    def _forget(self) -> None:
        """Drop large arguments, since a cancelled timer of the function may keep this object until its time."""
        asked = self.asked
        own = dict(asked.context)  # a copy, since each field of a request keeps the whole request alive
        self.asked = msgspec.structs.replace(asked, args=(), kwargs=_NO_KWARGS, context=own)

    def repeated(self, error: InvocationError | None) -> None:
        """Finish this call, which repeats another one and gets its answer."""
        self.is_over, self.error = True, error
        self.took_s = (time.perf_counter_ns() - self.began_ns) * 1e-9
        if self.host_sessions.repeated is not None:
            self.host_sessions.repeated(self)

    def release(self) -> None:
        """Drop the values, because the caller was answered."""
        self.items, self._last = [[]], None

    def _told(self, error: InvocationError) -> BridgeError:
        told = translated(error)
        if self.host_sessions.settings.debug and error.__cause__ is not None:
            told.stacktrace = traceback_of(error.__cause__)
        return told

    def result(self) -> bytes:
        """The result of a call that succeeded, as a serialised ``Any``."""
        items = self.items
        if len(items) == 1:
            (given,) = items
            if self.tool is None or not self.tool.is_stream:
                return given[0] if given else _NOTHING
            return pack([unpack(one) for one in given])
        return pack([[unpack(one) for one in given] for given in items])  # T-086


def correlation_of(metadata: Mapping[str, str], context: Mapping[str, str]) -> str:
    """The correlation id of a call, from its metadata or else its context; a new one if neither has one."""
    return metadata.get(CORRELATION) or context.get("correlation_id") or uuid4().hex
