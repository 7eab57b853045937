"""`OwnTask`: a task of ours, which the code of a function cannot cancel.

``for task in asyncio.all_tasks(): task.cancel()`` is a way to tidy up that an author may know from scripts. Here it
would end the server, and all calls of others. So a function may cancel the tasks that it has started, and the task that
runs its own call.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import sysconfig
from pathlib import Path
from typing import Any, Final

from invoker.context import RUNNING, Context

log = logging.getLogger(__name__)

_OURS: Final = frozenset(("invoker", "asyncio", "contextlib", "grpc"))
"""Top-level names of packages whose code may cancel any task."""

_HOUSE: Final = (
    f"{Path(__file__).parents[2]}/",
    f"{sysconfig.get_path('purelib')}/grpc/",
)
_ASYNCIO: Final = f"{Path(asyncio.__file__).parent}/"


class OwnTask(asyncio.Task[Any]):
    """A task of an invoker's loop.

    Attributes:
        owner: The context of the invocation that it runs, or that has started it.
    """

    __slots__ = ("owner",)

    owner: Context | None

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel as any task does, unless a function's code tries to cancel a task of ours or of another call."""
        asker = RUNNING.get()
        if asker is None or self.owner is asker or not self._is_of_house() or _is_ours(sys._getframe(1).f_globals):  # noqa: SLF001 - the documented way to the caller
            return super().cancel(msg)
        log.warning(
            "%r has cancelled a task that it did not start; the task goes on: '%s'", asker.function, self.get_name()
        )
        return False

    def _is_of_house(self) -> bool:
        """Whether the task runs the invoker's own code, and not code that an author has started."""
        code = getattr(self.get_coro(), "cr_code", None)
        name = code.co_filename if code is not None else ""
        # A compiled coroutine has no path; one without an owner belongs to grpcio.
        return name.startswith(_HOUSE) or (
            self.owner is None and (name.startswith(_ASYNCIO) or not name.startswith("/"))
        )


def own_task(loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> OwnTask:
    """Make a task; used as the task factory of a loop."""
    task = OwnTask(work, loop=loop, **more)
    task.owner = RUNNING.get()
    return task


def _is_ours(caller: dict[str, Any]) -> bool:
    return str(caller.get("__name__", "")).partition(".")[0] in _OURS
