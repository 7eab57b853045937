"""`Results`: the responses of calls in a host session by request id, so that no call runs twice (T-070 to T-073).

An entry is made when its call begins. A caller that sends the same id while the call runs waits for it; a later caller
gets the same response, byte for byte. The entry of a call that failed is dropped, so that a retry runs again. Callers
hold the lock of `HostSessions` for every method except `expire`, `weigh`, `drop` and `close`.

Results count in the memory budget of the process (ADR 14). If memory is short, the session with the most bytes loses
its results, and a repeated request id runs again; results never cause a call to be refused or ended.
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
    """The entry of one request id.

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
        """Whether the response is older than the time for which responses are kept."""
        return self.response is not None and now_ns - self.stored_ns > _TTL_NS

    def over(self) -> None:
        """Handle the end of the call: keep its response, or drop the entry if the call failed."""
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
            call.entry = None  # breaks a cycle that would keep the arguments until the garbage collector runs


class Results:
    """The entries of one session, the least recently used first.

    Args:
        host_sessions: The host sessions, with the lock and the budget of the process.
    """

    def __init__(self, host_sessions: HostSessions) -> None:
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._size = 0
        self._host_sessions = host_sessions
        self._share: Share | None = host_sessions.memory.share(is_cache=True)
        self._share.end = self.drop

    def find(self, asked: Asked, now_ns: int) -> Entry | None:
        """The entry of a request id; an expired one is dropped.

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
        """Make the entry for a call that begins."""
        call.entry = self._entries[asked.request_id] = Entry(self, call, _fingerprint(asked))

    def keep(self, entry: Entry, request_id: str, response: bytes | None, now_ns: int) -> None:
        """Keep the response of a call; None: the call failed, and its entry is dropped."""
        # set for the callers that wait, even after the end of the session
        entry.response, entry.stored_ns = response, now_ns
        if self._entries.get(request_id) is not entry:
            return
        if response is None or self._share is None:
            del self._entries[request_id]
            return
        self._size += len(response)
        if len(self._entries) > _MOST or self._size > _MOST_BYTES:
            self._shrink(entry)

    def expire(self, now_ns: int) -> float | None:
        """Drop the expired entries; returns the seconds until others expire, or None if no entry is left."""
        with self._host_sessions.lock:
            for name in [name for name, one in self._entries.items() if one.has_expired(now_ns)]:
                self._forget(name)
            # a running call counts as stored now
            stored_ns = [one.stored_ns or now_ns for one in self._entries.values()]
        self.weigh()
        return (min(stored_ns) + _TTL_NS - now_ns) / 1e9 if stored_ns else None

    def weigh(self) -> None:
        """Charge the bytes of the kept responses to the budget of the process."""
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
        """Drop all results, because the process holds too many bytes and this session has the most."""
        with self._host_sessions.lock:
            for name in [name for name, one in self._entries.items() if one.response is not None]:
                self._forget(name)
            share = self._share
        if share is not None:
            share.shrink(0)
            share.end = self.drop

    def close(self) -> None:
        """Drop all entries after the end of the session, and break the cycles between them and this object."""
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
    """The results of a session; made at its first call with a request id."""
    if session.results is None:
        session.results = Results(host_sessions)
    found: Results = session.results
    return found


def _fingerprint(asked: Asked) -> bytes:
    """A digest of the tool and the arguments of a call, by which repeated calls are recognised."""
    made = hashlib.sha256(asked.tool_id.encode())
    for one in asked.args:
        made.update(b"\0%d:" % len(one) + one)
    for name in sorted(asked.kwargs):
        made.update(b"\1%b=%d:" % (name.encode(), len(asked.kwargs[name])) + asked.kwargs[name])
    return made.digest()
