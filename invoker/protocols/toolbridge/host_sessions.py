"""`HostSessions`: the host sessions that this process knows, and the calls in each; for any thread, without I/O.

Theory. A *host session* is made by the rpc InitializeSession, and outlives every conversation. The store has the
authoritative state of a session: a space ``toolbridge/<id>``, which expires when it is not used. The text of the space
is the request that made the session; its items ``var/<name>`` are the variables. `HostSessions` keeps a copy of this
process, so that a call finds its session without asking the store::

    state    means                               is left by
    -------  ----------------------------------  ----------------------------------------------------------------------
    known    calls may begin                     ``close`` (an unforced clean-up waits for the store's answer)
    closing  no call may begin                   ``reopen``, if the store has kept the session; otherwise ``remove``
    gone     removed; running calls are told to  nothing
             end

An expired session is not found here; the caller then asks the store, which decides.

A `Keeper` keeps `HostSessions` and the store consistent, on the event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.core.budget import ProcessBudget
from invoker.core.frames import SharedFrames
from invoker.core.store import Reason, Space
from invoker.protocols.toolbridge.errors import BridgeError, Kind, session_gone
from invoker.protocols.toolbridge.settings import BridgeSettings

_PREFIX: Final = "toolbridge/"
_SECOND: Final = 1_000_000_000

T = TypeVar("T")

LARGE: Final = 64 * 1024
"""Larger requests are read in another thread, since their arguments may take more than some milliseconds."""

Observer: TypeAlias = Callable[[Any], None]
"""Called once for each `ToolCall` that has ended or was refused, in the thread where that happened."""


def space_of(session_id: str) -> str:
    """The name of the space of a host session in the store."""
    return _PREFIX + session_id


class Keeper(Protocol):
    """Keeps `HostSessions` and the store consistent; see `invoker.protocols.toolbridge.service.keeper`."""

    def watch(self, session: HostSession) -> None:
        """Watch a session that was just added to `HostSessions`; may be called from any thread."""

    def touch(self, session: HostSession) -> None:
        """Report to the store, within a second, that a session is in use; may be called from any thread."""

    def idle(self, session: HostSession) -> None:
        """Handle the end of the last call in a session that is closing or has ended; may be called from any thread."""

    def freed(self, session: HostSession) -> None:
        """Wake calls that wait for a place, since a tool call has ended; may be called from any thread."""

    async def room(self, session: HostSession, within_s: float) -> None:
        """Wait until one more tool call may begin in a session, the time limit passes, or the session ends."""

    def settle(self, session: HostSession) -> None:
        """Hold the space of a session while calls run in it, and release it otherwise; called on the event loop."""


class Aside(Protocol):
    """Reads the arguments of large requests in other threads; see `invoker.protocols.toolbridge.service.offload`."""

    def is_due(self) -> bool:
        """Whether this is the thread of an event loop, which must not read large arguments itself."""

    async def run(self, work: Callable[[], T]) -> T:
        """Do some work in another thread; returns its result, or raises its error."""


class NoPlace(BridgeError):
    """The session has reached its limit of tool calls, so another call must wait or fail."""


class HostTools(Protocol):
    """The tools of a host that can be called back."""

    specs: Sequence[pb.ToolSpec]

    def close(self) -> None:
        """Close the tools after the end of the session; may be called from any thread."""


class Callbacks(Protocol):
    """Connects to hosts that are called back."""

    async def connect(self, session_id: str, address: str) -> Any:
        """Connect to a host, and return its tools.

        Raises:
            BridgeError: The address is forbidden, or no server there lists tools.
        """


class Operation:
    """A tool call or an agent that runs in a host session.

    It is put into `Open.configs` of its invocation, so that the keeper can find the invocation when the session ends.

    Attributes:
        session: The session in which it runs; None while that is not known.
        is_tool: Whether it counts against the session's ``max_concurrent_tools``.
        cancel: Ends an operation that is not an invocation, with an error; called on the event loop.
    """

    __slots__ = ("cancel", "is_tool", "session")

    session: HostSession | None
    is_tool: bool
    cancel: Callable[[BridgeError], None] | None

    def __init__(self, session: HostSession | None, *, is_tool: bool) -> None:
        self.session = session
        self.is_tool = is_tool
        self.cancel = None


class HostSession:
    """This process's copy of a host session.

    Attributes:
        id: The id, which the host chose.
        request: The request that made the session, without defaults.
        ttl_ns: The session expires when it is not used for this many nanoseconds.
        created_ns: When the session was made, in nanoseconds since the epoch.
        used_ns: When this process last used the session, in nanoseconds since the epoch.
        waits: How many calls wait for a place.
        max_tools: How many tool calls may run at once; 0: any number.
        timeout_ms: The time limit of calls without their own; 0: the session has none.
        operations: The operations that run in the session.
        tools: How many of the operations are tool calls.
        gone: The reason why no call may begin any more; None while calls may begin.
        is_stale: Whether a use of the session was not yet reported to the store.
        is_tagged: Whether metrics count the session separately (T-158).
        agents: The agents of the session, by id.
        caches: Whether results are kept, and request ids identify duplicates (T-070).
        callback: The tools of the host, which can be called back; None: the host gave no address.
        scope: What functions in the session can call through their context; None: the functions of this process.
        results: The results of calls by request id; see `invoker.protocols.toolbridge.results`.
    """

    __slots__ = (
        *("agents", "caches", "callback", "created_ns", "gone", "id", "is_stale", "is_tagged", "max_tools"),
        *("operations", "request", "results", "scope", "timeout_ms", "tools", "ttl_ns", "used_ns", "waits"),
    )

    def __init__(self, session_id: str, space: Space, settings: BridgeSettings) -> None:
        self.id = session_id
        self.request = pb.InitializeSessionRequest.FromString(space.about)
        self.ttl_ns = int(space.ttl_s * _SECOND)
        self.created_ns = space.created_ns
        self.used_ns = space.used_ns
        self.max_tools = self.request.config.max_concurrent_tools or settings.concurrent_tools
        self.timeout_ms = self.request.config.default_timeout_ms
        self.caches = self.request.config.enable_caching
        self.is_tagged = self.request.config.enable_telemetry
        self.operations: set[Operation] = set()
        self.tools = self.waits = 0
        self.gone: Reason | None = None
        self.is_stale = False
        self.agents: dict[str, Any] = {}
        self.callback: Any = None
        self.scope: Any = None
        self.results: Any = None

    @property
    def metadata(self) -> Mapping[str, str]:
        """The metadata that the host gave when it made the session."""
        return self.request.metadata


class HostSessions:
    """The host sessions of this process.

    Args:
        lock: Held while sessions and their operations change.
        settings: Limits and defaults.
        clock: Returns the time in nanoseconds since the epoch.
        memory: The budget of the process; None: a budget of the default size.

    Attributes:
        aside: Reads the arguments of large requests in other threads; None: every thread reads its own requests.
        callbacks: Connects to hosts (`protocols.toolbridge.service.callback`); None: no host can be called back.
        capabilities: The capabilities that InitializeSession reports.
        chunks: Data chunks that were streamed since the process started.
        created: Sessions that this process has made since it started.
        drains: Whether the process is draining and takes no new sessions.
        expired: Sessions of this process that have expired since the process started.
        hits: Calls that were answered from an earlier result since the process started.
        keeper: Keeps this object and the store consistent; set before the first session is known.
        keeps_arguments: Whether observers read the arguments of a call, so that large ones are kept until the call has
            ended.
        lock: The lock; a ``threading.Lock`` if several threads serve calls.
        memory: The budget of the process.
        new_scope: Makes the scope of a session.
        now_ns: Returns the time in nanoseconds since the epoch.
        observers: Called with each tool call when it has ended.
        repeated: Called with each call that did not run, because its request id repeated that of another call.
        sessions: The sessions by id.
        settings: The limits and defaults.
        too_large: Requests that were refused because of their size since the process started.
        tools: The tools of this process; see `invoker.protocols.toolbridge.tools`.
        updates: The large updates of variables that watches are sending; equal ones share their bytes.
    """

    keeper: Keeper

    def __init__(
        self,
        lock: AbstractContextManager[Any],
        settings: BridgeSettings | None = None,
        clock: Callable[[], int] = time.time_ns,
        memory: ProcessBudget | None = None,
    ) -> None:
        self.memory = memory or ProcessBudget()
        self.lock = lock
        self.settings = settings or BridgeSettings()
        self.now_ns = clock
        self.aside: Aside | None = None
        self.callbacks: Callbacks | None = None
        self.capabilities: tuple[str, ...] = ()
        self.chunks = 0
        self.created = 0
        self.drains: Callable[[], bool] = lambda: False
        self.expired = 0
        self.new_scope: Callable[[HostSession], Any] = lambda _: None
        self.hits = 0
        self.keeps_arguments = False
        self.observers: list[Observer] = []
        self.repeated: Observer | None = None
        self.sessions: dict[str, HostSession] = {}
        self.too_large = 0
        self.tools: Any = None
        self.updates = SharedFrames()

    def find(self, session_id: str) -> HostSession | None:
        """The session, if it is known here and has not ended; None: the caller has to ask the store."""
        session = self.sessions.get(session_id)
        if session is None or session.gone is not None:
            return None
        if self.now_ns() >= session.used_ns + session.ttl_ns and not session.operations:
            return None
        return session

    def adopt(self, space: Space) -> HostSession:
        """Make this process's copy of a session from its space in the store.

        Raises:
            BridgeError: The session is closing.
        """
        session_id = space.name.removeprefix(_PREFIX)
        made = HostSession(session_id, space, self.settings)
        made.scope = self.new_scope(made)
        with self.lock:
            session = self.sessions.get(session_id)
            if session is not None and session.created_ns == space.created_ns:
                if session.gone is not None:
                    raise session_gone(session_id, session.gone)
                session.used_ns = max(session.used_ns, space.used_ns)
                return session
            self.sessions[session_id] = made
        self.keeper.watch(made)
        return made

    def meet(self, session: HostSession, tools: HostTools) -> None:
        """Keep the tools of a session's host.

        ``tools`` are closed if the session already has tools of its host, or has ended.
        """
        with self.lock:
            is_wanted = session.callback is None and session.gone is None
            if is_wanted:
                session.callback = tools
        if not is_wanted and session.callback is not tools:
            tools.close()

    def begin(self, operation: Operation) -> None:
        """Count an operation that begins in its session; the caller calls `end` afterwards.

        Raises:
            BridgeError: The session has ended.
            NoPlace: The session has reached its limit of tool calls (T-058).
        """
        session = operation.session
        assert session is not None
        with self.lock:
            if session.gone is not None:
                raise session_gone(session.id, session.gone)
            if operation.is_tool:
                if session.max_tools and session.tools >= session.max_tools:
                    raise NoPlace(
                        Kind.EXHAUSTED,
                        f"{session.tools} tool calls are running in the session, and no more are allowed at once",
                        code="concurrency", limit=session.max_tools, scope="session",
                    )  # fmt: skip
                session.tools += 1
            session.operations.add(operation)
            is_news, session.is_stale = not session.is_stale, True
        if is_news:
            self.keeper.touch(session)

    def end(self, operation: Operation) -> None:
        """Count an operation as ended; a second call does nothing."""
        session = operation.session
        assert session is not None
        with self.lock:
            if operation not in session.operations:
                return
            session.operations.remove(operation)
            session.tools -= operation.is_tool
            session.used_ns = self.now_ns()
            is_news, session.is_stale = not session.is_stale, True
            is_last = session.gone is not None and not session.operations
            is_waited_for = session.waits and operation.is_tool
        if is_waited_for:
            self.keeper.freed(session)
        if is_last:
            self.keeper.idle(session)
        elif is_news:
            self.keeper.touch(session)

    def close(self, session: HostSession, *, is_forced: bool) -> int:
        """Let no operation begin any more, because the session will be dropped.

        Returns: How many operations run. If any runs and ``is_forced`` is false, the session stays open.
        """
        with self.lock:
            if is_forced or not session.operations:
                session.gone = session.gone or Reason.DROPPED
            return len(session.operations)

    def reopen(self, session: HostSession) -> None:
        """Let calls begin again, since the store has not dropped the session."""
        with self.lock:
            if self.sessions.get(session.id) is session:
                session.gone = None

    def remove(self, session: HostSession, reason: Reason) -> None:
        """Remove a session whose space was dropped; the keeper ends the operations that still run."""
        with self.lock:
            if session.gone is None or reason is not Reason.UNKNOWN:
                session.gone = reason
            if self.sessions.get(session.id) is session:
                del self.sessions[session.id]
                self.expired += reason is Reason.EXPIRED
        session.agents.clear()
        if session.callback is not None:
            session.callback.close()
        results, session.results = session.results, None
        if results is not None:
            results.close()
