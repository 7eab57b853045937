"""`Results`: responses of the calls of a host session by their request ids; no call runs twice (T-070 to T-073).

An entry exists from the begin of its call. A caller that sends the same id meanwhile waits for that call; one that
sends it later gets the same response, byte for byte. The entry of a call that failed is dropped, so that a retry runs
again. The lock of `HostSessions` is held around each method here but `expire`, `weigh`, `drop` and `close`.

Kept results count as held memory of the process (ADR 14). If memory is short, the session that keeps most loses its
results, so a repeated request id runs again; no call is refused or ended because of kept results.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final

from invoker.core.budget import Share
from invoker.errors import InvocationError, Overloaded
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.host_sessions import HostSession, HostSessions
from invoker.protocols.toolbridge.reply import call_response
from invoker.protocols.toolbridge.toolcall import Asked, ToolCall

_MOST: Final = 1000
_MOST_BYTES: Final = 64 * 1024 * 1024
_TTL_NS: Final = 300 * 1_000_000_000


class Entry:
    """One request id.

    Attributes:
        call: The call that runs; None once it has ended.
        response: The response of the call; None while it runs.
    """

    __slots__ = ("_results", "call", "fingerprint", "response", "stored_ns")

    def __init__(self, results: Results, call: ToolCall, fingerprint: bytes) -> None:
        self._results = results
        self.call: ToolCall | None = call
        self.fingerprint = fingerprint
        self.response: bytes | None = None
        self.stored_ns = 0

    def has_expired(self, now_ns: int) -> bool:
        """Whether the response was kept for long enough."""
        return self.response is not None and now_ns - self.stored_ns > _TTL_NS

    def over(self) -> None:
        """Keep the response of the call, which has ended, or drop the entry of one that failed."""
        call = self.call
        assert call is not None
        response = call_response(call) if call.error is None else None
        with call.host_sessions.lock:
            self._results.keep(self, call.asked.request_id, response, call.host_sessions.now_ns())
        self._results.weigh()
        if response is not None:
            call.release()
            self.call = None
        else:
            call.entry = None  # a cycle would keep the arguments until the garbage collector runs


class Results:
    """The entries of one session, the least recently used first.

    Args:
        host_sessions: Has the lock, and the budget of the process.
    """

    def __init__(self, host_sessions: HostSessions) -> None:
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._size = 0
        self._host_sessions = host_sessions
        self._share: Share | None = host_sessions.memory.share(is_cache=True)
        self._share.end = self.drop

    def find(self, asked: Asked, now_ns: int) -> Entry | None:
        """The entry of a request id; an expired one is forgotten.

        Raises:
            BridgeError: The id was used for another tool or other arguments (T-071).
        """
        entry = self._entries.get(asked.request_id)
        if entry is None:
            return None
        if entry.has_expired(now_ns):
            self._forget(asked.request_id)
            return None
        if entry.fingerprint != _fingerprint(asked):
            raise BridgeError(
                Kind.VALIDATION,
                f"the request id {asked.request_id!r} was used for another tool or other arguments",
                code="request_id_conflict", field="request_id",
            )  # fmt: skip
        self._entries.move_to_end(asked.request_id)
        return entry

    def begin(self, asked: Asked, call: ToolCall) -> None:
        """Begin a call under its request id."""
        call.entry = self._entries[asked.request_id] = Entry(self, call, _fingerprint(asked))

    def keep(self, entry: Entry, request_id: str, response: bytes | None, now_ns: int) -> None:
        """Keep the response of a call; None: it has failed."""
        entry.response, entry.stored_ns = response, now_ns  # set for the callers that wait, even if the session is gone
        if self._entries.get(request_id) is not entry:
            return
        if response is None or self._share is None:
            del self._entries[request_id]
            return
        self._size += len(response)
        if len(self._entries) > _MOST or self._size > _MOST_BYTES:
            self._shrink(entry)

    def expire(self, now_ns: int) -> float | None:
        """Forget the expired entries; returns the seconds until others expire, or None if there are no others."""
        with self._host_sessions.lock:
            for name in [name for name, one in self._entries.items() if one.has_expired(now_ns)]:
                self._forget(name)
            stored_ns = [one.stored_ns or now_ns for one in self._entries.values()]  # a call that runs ends later
        self.weigh()
        return (min(stored_ns) + _TTL_NS - now_ns) / 1e9 if stored_ns else None

    def weigh(self) -> None:
        """Charge the bytes that are kept to the memory of the process."""
        share, held = self._share, self._size
        if share is None:
            return
        try:
            if held > share.mark:
                share.grow(held)
            else:
                share.shrink(held)
        except Overloaded as error:
            self.drop(error)

    def drop(self, _: InvocationError) -> None:
        """Forget all results, because the process holds too many bytes, and this session the most."""
        with self._host_sessions.lock:
            for name in [name for name, one in self._entries.items() if one.response is not None]:
                self._forget(name)
            share = self._share
        if share is not None:
            share.shrink(0)
            share.end = self.drop

    def close(self) -> None:
        """Drop everything, since the session is gone: the entries and this object refer to each other."""
        with self._host_sessions.lock:
            self._entries, self._size = OrderedDict(), 0
            share, self._share = self._share, None
        if share is not None:
            share.close()

    def _shrink(self, newest: Entry) -> None:
        oldest = [name for name, one in self._entries.items() if one.response is not None and one is not newest]
        for name in oldest:
            self._forget(name)
            if len(self._entries) <= _MOST and self._size <= _MOST_BYTES:
                return

    def _forget(self, request_id: str) -> None:
        entry = self._entries.pop(request_id)
        self._size -= len(entry.response or b"")


def results_of(host_sessions: HostSessions, session: HostSession) -> Results:
    """The results of a session; made with its first request id."""
    if session.results is None:
        session.results = Results(host_sessions)
    found: Results = session.results
    return found


def _fingerprint(asked: Asked) -> bytes:
    """A digest of the tool and the arguments of a call, which shows whether a call repeats an earlier one."""
    made = hashlib.sha256(asked.tool_id.encode())
    for one in asked.args:
        made.update(b"\0%d:" % len(one) + one)
    for name in sorted(asked.kwargs):
        made.update(b"\1%b=%d:" % (name.encode(), len(asked.kwargs[name])) + asked.kwargs[name])
    return made.digest()
