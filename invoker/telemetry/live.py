"""`Live`: makes snapshots of the running invocations of this process, in numbers, for watchers.

It reads the invocations' own counts on the loop, without a lock, while other threads continue to count: a number may be
slightly old, and two numbers need not be from the same moment. Nothing is counted only for the snapshots. Invocations
that have ended are remembered only while there is a watcher. Payloads, headers and errors' texts are never shown.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from invoker.core.engine import Engine
from invoker.core.invocation import Invocation
from invoker.core.streams import InputStream
from invoker.telemetry.logs import LABELS
from invoker.telemetry.pressure import FLOWING, Flow

MOST_INVOCATIONS: Final = 100
"""The most invocations in one snapshot; if more run, the newest are shown."""

_KEPT_S: Final = 10.0
_MOST_NOTED: Final = 25
"""The most endings that are kept between two snapshots; a watcher could not follow more."""
_MOST_SUMMED: Final = 1000
"""The most queued frames of an input whose bytes are added up one by one."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class _Ended:
    """An invocation that is over.

    Attributes:
        at_s: When it ended, on the clock of ``time.monotonic``.
        told: The data of the invocation in a snapshot.
    """

    at_s: float
    told: dict[str, Any]


class Live:
    """Snapshots of an engine's invocations.

    Args:
        engine: The engine of the invocations.
        workers: The number of processes that share the ports, this one included.
        flows: The flows of invocations by their id, in addition to their own counts.
    """

    def __init__(self, engine: Engine, *, workers: int = 1, flows: Callable[[], Mapping[str, Flow]] = dict) -> None:
        self._engine = engine
        self._flows = flows
        self._workers = workers
        self._ended: deque[_Ended] = deque(maxlen=MOST_INVOCATIONS)
        self._watchers = 0
        self._noted = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Remember the invocations that end within the block; called on the loop."""
        engine = self._engine
        self._watchers += 1
        if self._watchers == 1:
            # Threads iterate over the list while they close invocations, so it is replaced and never changed.
            engine.on_close = [*engine.on_close, self._closed]
        try:
            yield
        finally:
            self._watchers -= 1
            if not self._watchers:
                engine.on_close = [one for one in engine.on_close if one != self._closed]
                self._ended.clear()

    def snapshot(self) -> dict[str, Any]:
        """A snapshot of at most `MOST_INVOCATIONS` invocations, running ones before ended ones."""
        now = time.monotonic()
        self._noted = 0
        running = list(self._engine.running.values())
        flows, newest = self._flows(), reversed(running[-MOST_INVOCATIONS:])
        shown = [_told(one, now, flows.get(one.id, FLOWING)) for one in newest if not one.is_finished]
        room = MOST_INVOCATIONS - len(shown)
        ended = [one.told for one in reversed(tuple(self._ended)) if now - one.at_s < _KEPT_S]
        counters = self._engine.counters
        place = {"worker": LABELS.get("worker", 0), "workers": self._workers} if self._workers > 1 else {}
        return {
            "atS": round(now, 3),
            **place,
            "invocations": [*shown, *ended[:room]],
            "left": max(0, len(running) - MOST_INVOCATIONS),
            "counts": {
                "opened": counters.opened,
                "running": len(running),
                "refused": counters.refused,
                "finished": {status.name: count for status, count in tuple(counters.finished.items())},
            },
        }

    @staticmethod
    def encoded(snapshot: dict[str, Any]) -> bytes:
        """Encode a snapshot as a JSON object."""
        return _encode(snapshot)

    def _closed(self, invocation: Invocation) -> None:
        """Note an ending; called in any thread."""
        if self._noted >= _MOST_NOTED:
            return
        self._noted += 1
        now = time.monotonic()
        self._ended.append(_Ended(now, _told(invocation, now)))


def _told(invocation: Invocation, now: float, flow: Flow = FLOWING) -> dict[str, Any]:
    is_over = invocation.is_finished
    error = invocation.error
    ending = "OK" if error is None else error.status.name
    queued = _queued(invocation, flow)
    high_frames = invocation.budget.limits.high_frames
    is_blocked = invocation.blocked > 0 or flow.is_blocked
    is_paused = not is_over and (flow.is_paused or not invocation.wants_input)
    return {
        "id": invocation.id,
        "function": invocation.function.spec.name,
        "sinceS": round(invocation.took_s if is_over else now - invocation.started_s, 3),
        "status": ending if is_over else "running",
        "heldFrames": invocation.budget.frames + flow.frames,
        "heldBytes": invocation.budget.bytes + flow.bytes,
        "inputs": [
            {
                "name": one.spec.name,
                "frames": one.fed,
                "bytes": one.fed_bytes,
                "queuedFrames": frames,
                "queuedBytes": size,
                "highFrames": high_frames,
                "isPaused": is_paused and not one.is_ended,
                "isAwaited": not is_over and one.waiters > 0 and not one.queue and not one.is_ended,
                "isEnded": one.is_ended,
            }
            for one, (frames, size) in zip(invocation.inputs, queued, strict=True)
        ],
        "outputs": [
            {
                "name": one.name,
                "frames": one.emitted,
                "bytes": one.emitted_bytes,
                "isBlocked": is_blocked and not one.is_ended,
                "isEnded": one.is_ended,
            }
            for one in tuple(invocation.outputs)
        ],
    }


def _queued(invocation: Invocation, flow: Flow) -> list[tuple[int, int]]:
    """The frames and bytes that wait in each input. For several long queues, the bytes are estimated by their lengths.

    Frames that wait at the call may be for any of several inputs, so they are shown only if there is a single one.
    """
    inputs, total = invocation.inputs, invocation.budget.bytes
    frames = [len(one.queue) for one in inputs]
    if len(inputs) == 1:
        return [(frames[0] + flow.frames, (total if frames[0] else 0) + flow.bytes)]
    if sum(1 for one in frames if one) < 2:
        sizes = [total if one else 0 for one in frames]
    elif sum(frames) > _MOST_SUMMED:
        sizes = [total * one // sum(frames) for one in frames]
    else:
        sizes = [sum(len(message.payload) for _, message in _read(one)) for one in inputs]
    return list(zip(frames, sizes, strict=True))


def _read(stream: InputStream) -> Sequence[Any]:
    try:
        return tuple(stream.queue)
    except RuntimeError:  # another thread changed it meanwhile
        return ()
