"""`Child`: a worker process as its supervisor sees it: its start, messages, orders, kill and end."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import replace

from invoker.server.worker import Assignment
from invoker.telemetry.board import Row

log = logging.getLogger(__name__)

_ABORT_S = 2.0
_LOOKS = 4


class Child:
    """One worker process.

    Args:
        place: The assignment of the worker; its link is made here.

    Attributes:
        is_ready: Whether the worker has reported that it is ready.
        line: Its ready line.
        end_limit_s: How many seconds its end may take, as the worker has reported; 0 before that.
        failure: The reason why it cannot start and the exit code for that, if the worker has reported them.
        settled: Set once it is ready, or over.
        is_over: Whether it has ended.
    """

    def __init__(self, place: Assignment) -> None:
        self.place = place
        self.is_ready = False
        self.is_over = False
        self.line = ""
        self.end_limit_s = 0.0
        self.failure: tuple[str, int] = ("", 1)
        self.settled = asyncio.Event()
        self._ready_at = 0.0
        self._end = ""
        self._beat, self._looks = 0.0, 0
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def start(self, argv: list[str]) -> None:
        """Run the command line, in a process group of its own: a terminal's ^C is for the supervisor.

        Raises:
            OSError: The system has no room for another process.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self.place = replace(self.place, link=theirs.fileno())
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "invoker", *argv,
                    env=self.place.environment(), stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=(self.place.link, self.place.board), process_group=0,
                )  # fmt: skip
            except OSError:
                ours.close()
                raise
        self._reader, self._writer = await asyncio.open_connection(sock=ours)

    async def live(self) -> int:
        """Read the messages of the process until it ends; returns its exit code, which is negative for a signal."""
        process, writer = self._process, self._writer
        assert process is not None and writer is not None  # noqa: PT018
        listening = asyncio.create_task(self._listen(), name=f"worker {self.place.number}")
        try:
            code = await process.wait()
            with suppress(TimeoutError):  # a program that the worker started may hold the link open
                async with asyncio.timeout(_ABORT_S):
                    await asyncio.shield(listening)
        finally:
            listening.cancel()
            writer.close()
        self.is_ready, self.is_over = False, True
        self._end = self._end or _ending(code)
        self.settled.set()
        return code

    @property
    def pid(self) -> int:
        """The id of the process; 0 before it has started."""
        return self._process.pid if self._process is not None else 0

    @property
    def end(self) -> str:
        """A short text that describes how the process ended."""
        return self.failure[0] or self._end

    @property
    def lived_s(self) -> float:
        """For how many seconds it has been ready; 0 if it never was."""
        return time.monotonic() - self._ready_at if self._ready_at else 0.0

    def order(self, what: str) -> None:
        """Send the order ``duck``, ``drain`` or ``retire``. A worker that is not yet ready gets SIGTERM as well."""
        assert self._writer is not None
        self._writer.write(what.encode() + b"\n")
        if not self.is_ready:
            self._signal(signal.SIGTERM)

    def look(self, row: Row | None, silent_s: float) -> None:
        """Kill the worker when its row has not changed for several checks, since its loop is then stuck.

        Checks are counted instead of seconds, so that a worker is spared if the supervisor was stopped as well.

        Args:
            row: The row that the worker wrote on the board.
            silent_s: For how many seconds the row has not changed when the worker is killed; for the log.
        """
        if not self.is_ready or row is None or row.worker != self.place.number:
            return
        self._looks = self._looks + 1 if row.beat == self._beat else 0
        self._beat = row.beat
        if self._looks == _LOOKS:
            log.error(
                "worker %s has been silent for %g s: it logs where it is stuck, and is killed",
                self.place.number, silent_s,
            )  # fmt: skip
            self._end = f"its loop was stuck for {silent_s:g} s"
            self._abort()

    def kill(self) -> None:
        """End the process at once, by SIGKILL."""
        self._signal(signal.SIGKILL)

    def _abort(self) -> None:
        """Send SIGABRT: the process writes the stack of every thread (faulthandler) and ends, without a core file."""
        if sys.platform == "linux" and self._process is not None:
            import resource

            with suppress(OSError):
                resource.prlimit(self._process.pid, resource.RLIMIT_CORE, (0, 0))
        self._signal(signal.SIGABRT)
        asyncio.get_running_loop().call_later(_ABORT_S, self.kill)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _listen(self) -> None:
        assert self._reader is not None
        with suppress(OSError):
            async for line in self._reader:
                said = json.loads(line)
                if "end_limit_s" in said:
                    self.end_limit_s = said["end_limit_s"]
                elif "ready" in said:
                    self.line, self.is_ready, self._ready_at = said["ready"], True, time.monotonic()
                    self.settled.set()
                else:
                    self.failure = said["failed"], said["code"]


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
