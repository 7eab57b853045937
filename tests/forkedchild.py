"""`use`: children for isolated functions, and workers, that are forks, as servers of tests are: see `tests.forkserver`.

Each takes a third of a second of the processor or more to start, nearly all of it for imports. What a fork cannot show
starts as everywhere else: tests of the programs themselves, and of whose children they are, say so by the variable
``TEST_REAL_CHILDREN``.
"""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import socket
import subprocess
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from invoker.execution.isolation import child
from invoker.server import child as worker

_PROGRAM = ["-m", "invoker.server.isolated"]


class ForkedChild:
    """A child process, with that part of `subprocess.Popen` that `invoker.execution.isolation.child` uses.

    Its parent is the process that forks, which kills it as soon as nobody has this object any more: so would the kernel
    kill a child whose serving process has gone.
    """

    def __init__(self, asked: socket.socket, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._asked = asked

    def poll(self) -> int | None:
        """Its exit code if it has ended."""
        if self.returncode is None:
            with contextlib.suppress(BlockingIOError):
                told = self._asked.recv(4, socket.MSG_DONTWAIT)
                assert told, "the process that forks for tests has ended"
                self.returncode = int.from_bytes(told, "big", signed=True)
                self._asked.close()
        return self.returncode


@contextlib.contextmanager
def forked_children(address: bytes) -> Iterator[None]:
    """Children that this process starts are forks until the end of the block."""
    use(address)
    try:
        yield
    finally:
        child.subprocess, worker.asyncio = subprocess, asyncio


class ForkedWorker(ForkedChild):
    """A worker, with that part of `asyncio.subprocess.Process` that `invoker.server.child` uses."""

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        told = await asyncio.get_running_loop().sock_recv(self._asked, 4)
        assert told, "the process that forks for tests has ended"
        self._asked.close()
        self.returncode = int.from_bytes(told, "big", signed=True)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)


def use(address: bytes) -> None:
    """Children and workers that this process starts are forks of the process at the address."""

    def popen(command: Sequence[str], *, pass_fds: Sequence[int], **options: Any) -> Any:
        forked = None
        if list(command[1:-1]) == _PROGRAM:
            forked = _forked(ForkedChild, address, command[1:], pass_fds, dict(os.environ), is_bound=True)
        return forked or subprocess.Popen(command, pass_fds=pass_fds, **options)

    async def create(*command: str, env: dict[str, str], pass_fds: Sequence[int], **options: Any) -> Any:
        forked = _forked(ForkedWorker, address, command[1:], pass_fds, env)
        return forked or await asyncio.create_subprocess_exec(*command, env=env, pass_fds=pass_fds, **options)

    child.subprocess = types.SimpleNamespace(Popen=popen, DEVNULL=subprocess.DEVNULL)  # type: ignore[assignment]
    worker.asyncio = types.SimpleNamespace(**{**vars(asyncio), "create_subprocess_exec": create})  # type: ignore[assignment]


def _forked(
    kind: type[ForkedChild],
    address: bytes,
    args: Sequence[str],
    fds: Sequence[int],
    env: dict[str, str],
    *,
    is_bound: bool = False,
) -> Any:
    """None: a fork would not show the same."""
    if "TEST_REAL_CHILDREN" in env:
        return None
    asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asked.connect(address)
    opened = [0, 1, 2, *fds]
    request = {"args": [*args], "cwd": str(Path.cwd()), "env": env, "open": opened, "bound": is_bound}
    with Path(os.devnull).open("rb") as nothing:
        socket.send_fds(asked, [marshal.dumps(request)], [nothing.fileno(), *opened[1:]])
    pid = int.from_bytes(asked.recv(4), "big")
    asked.setblocking(False)
    if pid:
        return kind(asked, pid)
    asked.close()
    return None
