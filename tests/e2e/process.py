"""`Process`: an invoker that a test starts, signals and reads the log of, and that may fail."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.conftest import SLOW
from tests.serving import READY, ROOT, start

LOCAL = {"INVOKER_HOST": "127.0.0.1", "GRPC_PORT": "0", "PORT": "0"}


class Process:
    """``python -m invoker ARGS``.

    Args:
        args: Of the command line.
        cwd: Where its own modules are.
        env: On top of loopback and free ports; None takes a variable away.
        stdout: A file for what it prints; None throws that away.

    Attributes:
        args: Of the command line.
    """

    def __init__(
        self,
        *args: str,
        cwd: Path = ROOT,
        env: Mapping[str, str | None] | None = None,
        stdout: IO[str] | None = None,
    ) -> None:
        self.args = args
        wanted = {**os.environ, **LOCAL, **(env or {})}
        settings = {name: value for name, value in wanted.items() if value is not None}
        self._popen = start(args, cwd=cwd, env=settings, stdout=stdout)
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._is_over = False
        self._reader = threading.Thread(target=self._read, name=f"log of {self._popen.pid}")
        self._reader.start()

    @property
    def log(self) -> str:
        """Everything it has written."""
        return "".join(self.lines)

    def wait_for(self, text: str, count: int = 1) -> str:
        """The first line that holds a text, once there are so many."""

        def found() -> list[str]:
            return [line for line in self.lines if text in line]

        with self._changed:
            self._changed.wait_for(lambda: len(found()) >= count or self._is_over, 5 * SLOW)
            lines = found()
        assert len(lines) >= count, f"no {count} lines with {text!r}:\n{self.log}"
        return lines[0]

    def ready(self) -> tuple[str, str]:
        """The addresses of both transports, once it serves."""
        found = READY.search(self.wait_for("ready: "))
        assert found is not None, self.log
        return found[1], found[2] or ""

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._popen.send_signal(number)

    def interrupt(self) -> None:
        """Send SIGINT to it and to what it has started, as a terminal does on Ctrl-C."""
        os.killpg(self._popen.pid, signal.SIGINT)

    @property
    def pid(self) -> int:
        """Its id."""
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._popen.poll() is None

    def exit_code(self) -> int:
        """Wait for its end."""
        code = self._popen.wait(5 * SLOW)
        self._reader.join()
        return code

    def close(self) -> None:
        """Kill it if it still runs."""
        if self.is_running:
            self._popen.kill()
        self._popen.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._popen.stderr is not None
        with self._popen.stderr as lines:
            for line in lines:
                with self._changed:
                    self.lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()


@contextmanager
def started(
    *args: str, cwd: Path = ROOT, env: Mapping[str, str | None] | None = None, stdout: IO[str] | None = None
) -> Iterator[Process]:
    """A process that does not outlive the block."""
    process = Process(*args, cwd=cwd, env=env, stdout=stdout)
    try:
        yield process
    finally:
        process.close()
