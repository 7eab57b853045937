"""`placement_of`: where the body of a function runs; `Run`: how one invocation of it has run, as its log line reports.

The placement is known when the functions are loaded. How an invocation runs also depends on the transport, and on
whether all of the call has come before its function begins.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from invoker.author.spec import FunctionSpec


class Run(enum.StrEnum):
    """How an invocation runs, in the words of the log field ``run``."""

    TASK = "task"
    """Async: one task calls the function once, since all of its input has come."""
    LOOP = "loop"
    """Async: tasks of the event loop, whose input and output are streams."""
    THREAD = "thread"
    """Sync: the thread that has read the call, or a thread of the call's own."""
    POOL = "pool"
    """Sync: a thread of the pool, because the event loop has read the call."""
    CALLER = "caller"
    """Sync: the thread of the function that called this one."""
    PROCESS = "process"
    """Isolated: a child process."""


class Placement(enum.Enum):
    """The places where the body of an invocation can run, with the texts of ``invoker inspect``."""

    LOOP = "async, on the event loop"
    CALL = "sync, in a thread of its own"
    POOL = "sync, in the thread that reads a short HTTP request; otherwise in a thread of the pool"
    PROCESS = "isolated, in a child process"


def placement_of(spec: FunctionSpec, beside: Iterable[FunctionSpec] = ()) -> Placement:
    """Decide which driver and which body a function gets; only this function decides it.

    * `Placement.LOOP`: the loop's driver (`Reactor`) and a `LoopRunner`.
    * `Placement.CALL`: on the fast gRPC transport, a `DirectConversation` in the thread of its call, and as bodies
      `Single`, or `Several` once the function has given more than one iterator. A transport or session without a thread
      for each call takes the loop's driver and a `ThreadRunner` instead.
    * `Placement.POOL`: the loop's driver and a `ThreadRunner`, because the calls of one gRPC server share a queue, and
      an async function needs the loop to drain it. A short HTTP request is read by a thread of its own, which runs the
      function as for `Placement.CALL`.
    * `Placement.PROCESS`: the loop's driver and a `ProcessRunner`, which also needs the loop.

    Args:
        spec: The spec of the function.
        beside: The specs of all functions that the same process serves.
    """
    if spec.isolation:
        return Placement.PROCESS
    if spec.is_async:
        return Placement.LOOP
    return Placement.POOL if any(one.is_async or one.isolation for one in beside) else Placement.CALL
