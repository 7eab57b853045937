"""``--workers N``: starts processes that serve side by side on the same ports, and keeps as many alive.

Each worker runs the same command line again (`invoker.server.worker`): nothing is pickled and nothing forked, so
workers share no threads, locks or modules, and new workers run the newest code. The kernel spreads connections over
them (SO_REUSEPORT). This process only holds the ports, and never imports the author's code, so it cannot crash with it.

A worker is starting, then ready, then over; a ready one may be retiring in between, when a successor has its slot. A
slot whose worker has ended gets a new worker after a pause that doubles with each crash. Until a first worker has been
ready, a start that fails for a reason (`StartupError`) ends everything, as it does with one process.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import signal
import socket
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field

from invoker.errors import ConfigError, StartupError
from invoker.server.child import Child
from invoker.server.ports import reserve
from invoker.server.sharedfolder import SharedFolder
from invoker.server.stopping import Signals, leave_at_once
from invoker.server.table import TABLE
from invoker.server.worker import Assignment, end_limit_s
from invoker.settings import Config
from invoker.telemetry.board import Board, Numbers, Row
from invoker.telemetry.metrics import RELOADS, RESTARTS, WANTED, WORKERS
from invoker.telemetry.ready import announce
from invoker.transports.sockets import check_address_space

log = logging.getLogger(__name__)

_TRIES = 5
"""How many workers may end before a first one has been ready."""

_LOOKS_A_HEARTBEAT = 4


def supervise(config: Config, argv: list[str]) -> int:
    """Serve with several workers until SIGTERM or SIGINT; returns the exit code, as for one process.

    Args:
        config: Every setting.
        argv: The command line, for the workers.

    Raises:
        StartupError: A port cannot be bound, or no worker becomes ready.
    """
    check_address_space()  # a worker would report this, too, but this process needs threads before any worker runs
    return asyncio.run(Supervisor(config, argv).run())


class Backoff:
    """Computes the wait before the next start, which doubles with each process that ends soon after its start.

    Args:
        first_s: Seconds to wait after the first process that ends soon.
        most_s: The longest wait.
        calm_s: After a process has lived for this many seconds, the wait starts anew.
    """

    def __init__(self, first_s: float = 0.1, most_s: float = 30.0, calm_s: float = 10.0) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._calm_s = calm_s
        self._ends = 0

    def after(self, lived_s: float) -> float:
        """Seconds to wait after the end of a worker that was ready for ``lived_s`` seconds."""
        if lived_s >= self._calm_s:
            self._ends = 0
        self._ends += 1
        return min(self._most_s, self._first_s * 2.0 ** min(self._ends - 1, 30))


@dataclass(eq=False, slots=True)
class _Slot:
    """A place for one worker at a time."""

    child: Child | None = None
    backoff: Backoff = field(default_factory=Backoff)


class Supervisor:
    """Keeps ``config.workers`` workers alive.

    Args:
        config: Every setting.
        argv: The command line, for the workers.
    """

    def __init__(self, config: Config, argv: list[str]) -> None:
        self._config = config
        self._argv = argv
        self._slots = [_Slot() for _ in range(config.workers)]
        self._children: set[Child] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count(1)
        self._board = Board.make()
        self._row = Row(numbers=Numbers({RESTARTS: 0, RELOADS: 0}, {WORKERS: 0, WANTED: config.workers}))
        self._ports: list[socket.socket] = []
        self._kept = ExitStack()
        self._store = ""
        self._signals = Signals(config.lame_duck_s, leave=self._leave_at_once)
        self._stop = self._signals.told
        self._reload = asyncio.Event()
        self._announced = asyncio.Event()
        self._deaths = 0  # counts only until a first worker is ready
        self._was_ready = False
        self._is_clean = True
        self._is_leaving = False
        self._error: StartupError | None = None

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT. The exit code is 0 if every worker then ended cleanly.

        Raises:
            StartupError: A port cannot be bound, or no worker becomes ready.
        """
        loop = asyncio.get_running_loop()
        self._signals.listen()
        loop.add_signal_handler(signal.SIGHUP, self._reload.set)
        with self._kept, closing(self._signals):
            self._make_store()
            await self._run()
            if self._is_leaving:
                await asyncio.Event().wait()  # another thread ends the process at a second signal
        if self._error is not None:
            raise self._error
        log.info("stopped")
        return 0 if self._is_clean else 1

    def _make_store(self) -> None:
        """Give the workers a shared file, if a protocol needs one; the last worker removes it."""
        if self._config.store == "auto" and any(one.shares_state for one in TABLE.served(self._config)):
            folder = SharedFolder.make()
            if folder is None:
                log.warning(
                    "there is no place for temporary files, so each worker keeps the sessions of the tool bridge, and "
                    "federated rounds, for itself, and a call that comes to another worker does not find its session; "
                    "mount a writable /tmp, or give INVOKER_STORE"
                )
                return
            self._kept.callback(folder.remove)
            self._store = f"sqlite:{folder.path / 'store.db'}"

    async def _run(self) -> None:
        try:
            host, _ = self._config.bind_host()
            self._ports.append(reserve(host, self._config.grpc_port, "gRPC", "GRPC_PORT"))
            for service in TABLE.served(self._config):
                self._ports += [reserve(*port) for port in service.ports(self._config)]
            if self._config.http:
                self._ports.append(reserve(host, self._config.port, "HTTP", "PORT"))
            async with asyncio.TaskGroup() as group:
                await self._serve(group)
        finally:
            for child in self._children:
                child.kill()
            for port in self._ports:
                port.close()
            self._board.close()

    async def _serve(self, group: asyncio.TaskGroup) -> None:
        """Keep all slots filled; on a signal, end all workers, whose tasks the group waits for."""
        self._group = group
        self._publish()
        for slot in self._slots:
            slot.child = await self._spawn(slot)
        helpers = [group.create_task(self._watch()), group.create_task(self._reload_when_told())]
        await self._stop.wait()
        for helper in helpers:
            helper.cancel()
        if self._children:
            log.info("stopping: %s workers", len(self._children))
        if not self._signals.is_draining:
            for child in self._children:
                child.order("duck")
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.lame_duck_s):
                    await self._signals.drain.wait()
        for child in self._children:
            child.order("drain")
        limit_s = max([end_limit_s(self._config), *(child.end_limit_s for child in self._children)])
        await asyncio.wait([*self._tasks, group.create_task(asyncio.sleep(0))], timeout=limit_s)
        for child in self._children:
            log.warning("worker %s does not end: it is killed", child.place.number)
            child.kill()

    async def _spawn(self, slot: _Slot) -> Child:
        """Start a worker for a slot, in which another worker may still serve.

        Raises:
            OSError: The system has no room for another process.
        """
        rows = {child.place.row for child in self._children}
        row = next(index for index in itertools.count(1) if index not in rows)
        ports = [port.getsockname()[1] for port in self._ports]
        child = Child(Assignment(next(self._numbers), row, -1, self._board.handle, ports[0], ports[-1], self._store))
        await child.start(self._argv)
        self._children.add(child)
        if self._stop.is_set():
            child.order("drain")
        for work in (self._live(slot, child), self._greet(child)):
            task = self._group.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return child

    async def _greet(self, child: Child) -> None:
        """Wait until a worker is ready, and print the ready line when all are (R-016)."""
        await child.settled.wait()
        if not child.is_ready:
            return
        self._was_ready = True
        self._publish()
        log.info("worker %s is ready", child.place.number, extra={"pid": child.pid})
        if not self._announced.is_set() and self._ready() == len(self._slots):
            self._announced.set()
            announce(child.line)

    async def _live(self, slot: _Slot, child: Child) -> None:
        """Wait until a worker ends, and start another one in its slot if the slot is still in use."""
        code = await child.live()
        self._children.discard(child)
        self._bury(child)
        number = child.place.number
        if self._stop.is_set():
            if code and child.lived_s:
                self._is_clean = False
                log.warning("worker %s ended: %s", number, child.end)
        elif slot.child is child:
            await self._fill_again(slot, child)
        elif child.lived_s:
            log.log(logging.WARNING if code else logging.INFO, "worker %s has retired: %s", number, child.end)

    async def _fill_again(self, slot: _Slot, dead: Child) -> None:
        number, end = dead.place.number, dead.end
        if not self._was_ready and self._gives_up(dead):
            return
        while slot.child is dead:
            delay_s = slot.backoff.after(dead.lived_s if dead.is_over else 0.0)
            log.warning("worker %s ended: %s; another one starts in %.1f s", number, end, delay_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await self._stop.wait()
                    return
            if slot.child is not dead:  # a reload has put another worker into the slot meanwhile
                return
            try:
                slot.child = await self._spawn(slot)
            except OSError as error:
                end = f"no other could be started: {error.strerror}"
            else:
                self._count(RESTARTS)

    def _gives_up(self, dead: Child) -> bool:
        """Whether to give up, because several workers have ended before any became ready."""
        text, code = dead.failure
        self._deaths += 1
        if not text and self._deaths < _TRIES:
            return False
        if self._error is None:
            text = text or f"no worker became ready; {self._deaths} have ended, the last one with: {dead.end}"
            self._error = ConfigError(text) if code == ConfigError.exit_code else StartupError(text)
        self._signals.begin(drain=True)
        return True

    async def _reload_when_told(self) -> None:
        await self._announced.wait()
        while True:
            await self._reload.wait()
            self._reload.clear()
            log.info("reloading")
            if await self._replace_all():
                log.info("reloaded: %s workers run the newest code", len(self._slots))

    async def _replace_all(self) -> bool:
        """Replace the workers one after the other. Each new one is ready before the old one retires (SIGHUP)."""
        for slot in self._slots:
            try:
                new = await self._spawn(slot)
            except OSError as error:
                log.error("not reloaded: %s", error.strerror)
                return False
            await new.settled.wait()
            if not new.is_ready:
                log.error("not reloaded, the old workers continue: %s", new.end)
                return False
            old, slot.child = slot.child, new
            self._count(RELOADS)
            if old is not None and not old.is_over:
                old.order("retire")
        return True

    async def _watch(self) -> None:
        """Check regularly whether the workers' loops still run."""
        silent_s = self._config.heartbeat_s
        while silent_s:
            await asyncio.sleep(silent_s / _LOOKS_A_HEARTBEAT)
            rows = self._board.read()
            for child in self._children:
                child.look(rows.get(child.place.row), silent_s)

    def _ready(self) -> int:
        return sum(slot.child is not None and slot.child.is_ready for slot in self._slots)

    def _count(self, name: str) -> None:
        self._row.numbers.counters[name] += 1
        self._publish()

    def _bury(self, dead: Child) -> None:
        """Add the counts of a dead worker to the sums."""
        row = self._board.read().get(dead.place.row)
        if row is not None and row.worker == dead.place.number:
            self._row.numbers = self._row.numbers.plus(Numbers(row.numbers.counters))
            self._row.added[dead.place.row] = dead.place.number
        self._publish()

    def _publish(self) -> None:
        self._row.numbers.gauges[WORKERS] = self._ready()
        self._board.write(0, self._row)

    def _leave_at_once(self, number: int) -> None:
        self._is_leaving = True
        for child in list(self._children):
            child.kill()
        self._kept.close()
        leave_at_once(number)
