"""The worker's side of ``--workers``: a process among several on the same ports; its orders come through a socket.

The supervisor starts it as ``python -m invoker`` with its own arguments, and its place in an environment variable.
The worker sends ``ready`` or ``failed``; the supervisor sends ``duck`` and ``drain`` (as SIGTERM and SIGINT do for one
process) or ``retire``:

    serving  --retire--> retiring --its clients have left, or a limit--> draining --> over
    serving, retiring --duck, SIGTERM--> lame duck (`invoker.server.stopping`)--> draining
    serving, retiring, lame duck --drain, or the supervisor is gone------> draining

A retiring worker takes no more connections and refuses nothing. Its clients are asked to reconnect by the age of their
connections. This is the only way in which gRPC's core makes clients reconnect without failing calls: a server that
shuts down cancels the calls that arrive before the client is notified.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import logging
import os
import socket
import threading
import traceback
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoker.errors import StartupError
from invoker.server.life import begin, end, lame_duck, limit_end, run_to_end
from invoker.server.ports import connections, leave
from invoker.server.sharedfolder import SharedFolder
from invoker.server.stopping import LEAST_S, Signals
from invoker.settings import Config
from invoker.telemetry import logs
from invoker.telemetry.board import Board, Numbers, Row

if TYPE_CHECKING:
    from invoker.server.server import Server

log = logging.getLogger(__name__)

BEAT_S = 0.5
"""Seconds between two writes of a worker's numbers, unless the heartbeat needs a shorter time."""

_VARIABLE = "INVOKER_WORKER"  # `invoker.cli.main` looks for it, too
_LOOK_S = 0.1
_SLACK_S = 10.0


@dataclass(frozen=True, slots=True)
class Assignment:
    """The data that a worker gets from the process that starts it.

    Attributes:
        number: The number of the worker; no number is used twice.
        row: The worker's row on the board.
        link: File descriptor of the worker's end of the socket.
        board: File descriptor of the board.
        grpc_port: The port of the gRPC transport, never 0.
        http_port: The port of the HTTP transport, never 0.
        store: The value of INVOKER_STORE, if the supervisor has made a store for its workers; otherwise empty.
    """

    number: int
    row: int
    link: int
    board: int
    grpc_port: int
    http_port: int
    store: str = ""

    def environment(self) -> dict[str, str]:
        """The environment for the worker, with this assignment in a variable."""
        return {**os.environ, _VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def taken(cls, environment: MutableMapping[str, str] = os.environ) -> Assignment:
        """Take the assignment of this worker out of the environment, so that programs which it starts have none."""
        return cls(**json.loads(environment.pop(_VARIABLE)))


def end_limit_s(config: Config, server: Server | None = None) -> float:
    """Seconds within which a worker must end after the order to drain; one that has not ended by then is stuck.

    A worker ends itself when its end takes too long, so this is longer than all parts of the end may take.

    Args:
        config: The worker's configuration.
        server: The worker's server, once it is built: its functions determine how long their stop hooks may take.
    """
    own_s = config.lame_duck_s + config.drain_s + config.grace_s
    if server is not None:
        own_s = server.end_limit_s + server.guard.last_s
    return own_s + 2 * max(config.hook_timeout_s, LEAST_S) + _SLACK_S


def work(
    place: Assignment, config: Config, build: Callable[[Config], Server], loop_factory: Callable[[Server], Any]
) -> int:
    """Serve as one of several workers; returns the exit code of the process.

    Args:
        place: The assignment of this worker.
        config: The supervisor's configuration.
        build: Makes the server.
        loop_factory: Returns the factory of a server's event loop.
    """
    for handle in (place.link, place.board):
        os.set_inheritable(handle, False)
    logs.LABELS["worker"] = place.number
    with suppress(OSError, ValueError, AttributeError):  # standard error is not a file
        faulthandler.enable()  # so that SIGABRT, which ends a silent worker, writes where it is stuck
    link = socket.socket(fileno=place.link)
    folder = SharedFolder(Path(place.store.partition(":")[2]).parent) if place.store else None
    try:
        store = place.store or config.store
        server = build(replace(config, grpc_port=place.grpc_port, port=place.http_port, store=store))
        return run_to_end(server, Worker(server, place, link).run, loop_factory(server))
    except StartupError as error:
        if config.debug:
            traceback.print_exc()
        _say(link, failed=error.detail, code=error.exit_code)
        return error.exit_code
    finally:
        link.close()
        if folder is not None:
            folder.leave()
        logging.shutdown()


class Worker:
    """Runs a server, and obeys the orders of the supervisor.

    Args:
        server: The server, not yet started.
        place: The assignment of this worker.
        link: The socket to the supervisor.
    """

    def __init__(self, server: Server, place: Assignment, link: socket.socket) -> None:
        server.share_ports = True
        self._own, server.numbers = server.numbers, self._sum
        self._server = server
        self._place = place
        self._link = link
        self._board = Board(place.board)
        self._signals = Signals(server.config.lame_duck_s, heard=lambda: limit_end(server))
        self._end_limit_s = end_limit_s(server.config, server)
        self._retire = asyncio.Event()
        self._over = threading.Event()

    async def run(self) -> int:
        """Serve until the supervisor orders the end or is gone; returns the exit code, as for one process."""
        self._signals.listen()
        threading.Thread(
            target=self._listen, args=(asyncio.get_running_loop(),), name="invoker-link", daemon=True
        ).start()
        _say(self._link, end_limit_s=self._end_limit_s)
        try:
            return await self._serve()
        finally:
            self._over.set()
            self._signals.close()
            self._server.guard.disarm()
            with suppress(OSError):
                self._link.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads orders

    async def _serve(self) -> int:
        server, config = self._server, self._server.config
        if not await begin(server, self._signals.told):
            return await end(server, 0.0)
        self._write()
        beat = asyncio.get_running_loop().create_task(self._beat(), name="beat")
        _say(self._link, ready=server.ready_block())
        await _first(self._signals.told, self._retire)
        if not self._signals.told.is_set():
            await self._leave()
        self._signals.begin(drain=not self._signals.told.is_set())
        await lame_duck(server, self._signals)
        code = await end(server, config.drain_s)
        beat.cancel()
        self._write()
        return code

    async def _leave(self) -> None:
        """Serve the connected clients until they have moved to other processes."""
        server, age_s = self._server, self._server.config.grpc_age_s(has_others=True)
        log.info("retiring: another worker takes the new connections")
        # gRPC varies the age of connections by a tenth, and a connection may have come just now.
        limit_s = age_s * 1.1 + 1 if age_s else server.config.drain_s
        if not await leave(server.ports, server.leave):
            log.warning(
                "this system cannot stop listening on a shared port without losing connections; some calls may fail"
            )
            return
        until = asyncio.get_running_loop().time() + limit_s
        while connections(server.ports) and asyncio.get_running_loop().time() < until:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._signals.told.wait()
                    return

    async def _beat(self) -> None:
        """Write the numbers of this worker regularly, which also shows that its loop lives."""
        heartbeat_s = self._server.config.heartbeat_s
        pause_s = min(BEAT_S, heartbeat_s / 10) if heartbeat_s else BEAT_S
        while True:
            await asyncio.sleep(pause_s)
            self._write()

    def _write(self) -> None:
        self._board.write(self._place.row, Row(self._place.number, numbers=self._own()))

    def _sum(self) -> Numbers:
        self._write()
        return self._board.total()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read orders, in a thread, so that the end of the supervisor is seen even while the loop is stuck."""
        with suppress(OSError), self._link.makefile("r") as orders:
            for order in orders:
                if order.strip() == "retire":
                    with suppress(RuntimeError):  # the loop has closed
                        loop.call_soon_threadsafe(self._retire.set)
                else:
                    self._signals.begin(drain=order.strip() == "drain")
        if not self._signals.told.is_set() and not self._over.is_set():
            log.warning("the supervisor is gone: draining")
        self._signals.begin(drain=True)
        if not self._over.wait(self._end_limit_s):
            os._exit(1)  # no supervisor is left that could kill this process


def _say(link: socket.socket, **said: Any) -> None:
    with suppress(OSError):  # the supervisor is gone; the thread that reads orders notices that
        link.sendall(json.dumps(said).encode() + b"\n")


async def _first(*events: asyncio.Event) -> None:
    tasks = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
