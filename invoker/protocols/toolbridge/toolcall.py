"""`ToolCall`: the one pipeline of every tool call, for an rpc, a batch, an agent or another tool.

Theory. A call goes through these checks in order, and the first that refuses it ends it::

    session, tool, decode, bind, types, rules     `begin`; nothing of this uses up a limit (T-051)
    limits of the session                         `begin`
    limits of the tool, run                       the engine, by the steps that `begin` gives
    result                                        `emitted`

``begin`` gives the steps ``Open Feed* EndInput``. The session that performs them passes each message to ``emitted``,
and the ending to ``finish``. Then the call is over: its place in the session is free, and the observers of
`HostSessions` have been called. The call stands in `Open.configs`, so the end of its invocation finishes it even
without a session.
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
"""The metadata by which hosts correlate calls that belong together (T-175)."""

MOST_ITEMS: Final = 1000
"""The most items of a stream that is collected to a list (T-067)."""

PROTOCOL: Final = "toolbridge"
"""The protocol that each `Open` of a tool call names; by it the engine finds the observer of its end."""

_CONTEXT: Final = 1000
"""The most entries of the context of a call."""

_NOTHING: Final = pack(None)
_NO_STEPS: Final = ()
_NO_KWARGS: Final[Mapping[str, bytes]] = MappingProxyType({})


class Asked(msgspec.Struct, frozen=True):
    """The request of a caller.

    Attributes:
        session_id: The session in which the tool is to run.
        tool_id: Id or name of the tool.
        args: The arguments by position, each a serialised ``Any``.
        kwargs: The keyword arguments by name.
        request_id: Identifies duplicates; may be empty.
        timeout_ms: The time limit; 0: none is given.
        context: Values for the function (T-069).
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
        via: The way by which it came: ``execute``, ``stream``, ``batch``, ``agent``, ``nested`` or ``callback``.
        key: The key of its invocation; unique within the conversation.

    Attributes:
        default_ms: Its time limit if the caller, the session and the tool give none (T-054).
        bound: The tool with its arguments, or their error, if they were read before `begin`.
        began_ns: When it was made, on the clock of ``time.perf_counter_ns``.
        cpu_ns: Processor time of the function; 0 where it is not known.
        entry: The entry that is notified of the end, if the session detects duplicates by request ids; see `results`.
        error: The error with which it ended; None while it runs and after a success.
        is_over: Whether it has ended.
        items: The values that it gave, by output.
        memory_bytes: The most memory that its child process took; 0: it had no child process.
        most_ms: The longest time that it may take, whatever the caller asks for; 0: no limit.
        session: The session in which it runs; None if there is none.
        tool: The tool that is called; None if it does not exist.
        took_s: Seconds until it ended.
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
        """A step that reads the arguments in another thread before `begin`.

        None if the arguments are small, or were read already.

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
        """Bind the arguments, in any thread; `begin` raises their errors.

        Args:
            other: A call that has bound the same arguments.
        """
        if other is not None:
            self.bound = other.bound
        elif (tool := self.host_sessions.tools.find(self.asked.tool_id)) is not None:
            try:
                self.bound = tool, tool.bind(self.asked.args, self.asked.kwargs)
            except BridgeError as error:
                self.bound = tool, error.kept()

    def begin(self, session: HostSession, *, is_shared: bool = False) -> Sequence[CallStep]:
        """Begin to run in a session.

        Args:
            session: The session.
            is_shared: Whether other conversations may join the invocation by its key.

        Returns:
            The steps; none if it was refused and is over.

        Raises:
            NoPlace: The session runs as many tool calls as it may; a call of a batch waits for a place, any other call
                fails.
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
        """Begin to run in a session as a call of its host's tool, which is no invocation here.

        Returns:
            How long it may take, in seconds (T-054).

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
        """Take a value of the function.

        Several conversations may share the call, and each passes the same event; it counts once.
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
        """The correlation id that the caller gives; made up if it gives none (T-175)."""
        self._correlation = self._correlation or correlation_of(self.asked.metadata, self.asked.context)
        return self._correlation

    def check(self, payload: bytes, size: int = 0) -> None:
        """Check one item that the function gave.

        Args:
            payload: A serialised ``Any``.
            size: The size of the message that carries the item; 0: the item is not sent.

        Raises:
            BridgeError: The result is too large to be sent (T-062), or breaks a rule of the tool (T-049).
        """
        size, most = size or len(payload), self.host_sessions.settings.message_bytes
        if size > most:
            text = f"the result has {size} bytes and exceeds the limit of {most} bytes"
            raise BridgeError(Kind.EXHAUSTED, text, code="result_too_large", size=size, limit=most)
        if self.tool is not None and self.tool.check is not None:
            self.tool.check(payload)

    def finish(self, error: InvocationError | None) -> None:
        """Finish the call; the first ending counts."""
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
        """Drop large arguments, since a cancelled timer of the function may keep this object until it is due."""
        asked = self.asked
        own = dict(asked.context)  # each field of a request keeps the whole request alive
        self.asked = msgspec.structs.replace(asked, args=(), kwargs=_NO_KWARGS, context=own)

    def repeated(self, error: InvocationError | None) -> None:
        """Note the ending of the call that this one repeats, and whose answer this one gets."""
        self.is_over, self.error = True, error
        self.took_s = (time.perf_counter_ns() - self.began_ns) * 1e-9
        if self.host_sessions.repeated is not None:
            self.host_sessions.repeated(self)

    def release(self) -> None:
        """Drop the call's values, because the caller was answered."""
        self.items, self._last = [[]], None

    def _told(self, error: InvocationError) -> BridgeError:
        told = translated(error)
        if self.host_sessions.settings.debug and error.__cause__ is not None:
            told.stacktrace = traceback_of(error.__cause__)
        return told

    def result(self) -> bytes:
        """The result of a call that has succeeded, as a serialised ``Any``."""
        items = self.items
        if len(items) == 1:
            (given,) = items
            if self.tool is None or not self.tool.is_stream:
                return given[0] if given else _NOTHING
            return pack([unpack(one) for one in given])
        return pack([[unpack(one) for one in given] for given in items])  # T-086


def correlation_of(metadata: Mapping[str, str], context: Mapping[str, str]) -> str:
    """The correlation id of a call, from its metadata, otherwise from its context; a new one if neither has one."""
    return metadata.get(CORRELATION) or context.get("correlation_id") or uuid4().hex
