"""The blocks of README.md with their servers in an image: a bare root that is read-only, as another user.

Its clients run on this machine, since the image has neither curl nor pytest.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.image.roots import Image, running
from tests.pages import ROOT, Reader, steps

LIMIT_S = 60.0


def read(image: Image, folder: Path) -> None:
    """Do what the README says.

    Raises:
        AssertionError: A block does something else than it says.
    """
    folder.mkdir(mode=0o755)
    with pytest.MonkeyPatch.context() as patch, _InImage(image, folder, patch) as reader:
        for step in steps((ROOT / "README.md").read_text()):
            reader.do(step)
            print(f"  ok: README.md: {step.text.splitlines()[0]}", flush=True)


class _InImage(Reader):
    """Someone who reads a page, and starts its servers in a container."""

    def __init__(self, image: Image, folder: Path, patch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, patch)
        (folder / "functions").unlink()  # what a link names is not in the image
        shutil.copytree(ROOT / "functions", folder / "functions")
        self._image, self._folder = image, folder

    def _started(self, words: list[str]) -> Any:
        return _Contained(self._image, self._folder, words)


class _Contained:
    """A server in the image, as process 1.

    Attributes:
        grpc: Its address.
        http: The same.
    """

    def __init__(self, image: Image, folder: Path, words: list[str]) -> None:
        env = {"INVOKER_HOST": "127.0.0.1", "PORT": _free(), "GRPC_PORT": _free()}
        self.http, self.grpc = f"127.0.0.1:{env['PORT']}", f"127.0.0.1:{env['GRPC_PORT']}"
        popen = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        command = [*image.command, *words]
        self._running = running(image, command, folder=folder, seen_as="/functions", env=env, read_only=True, **popen)
        self._process = self._running.__enter__()
        self._log: list[bytes] = []
        ready = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(ready,))
        self._reader.start()
        assert ready.wait(LIMIT_S), b"".join(self._log).decode()
        assert self._process.poll() is None, b"".join(self._log).decode()

    def _read(self, ready: threading.Event) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._log.append(line)
            if re.search(rb"ready: .* http=", line):
                ready.set()
        ready.set()

    def close(self) -> int:
        """Ask it to end, and give its exit code."""
        inner = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        os.kill(int(inner), signal.SIGTERM)
        code = self._process.wait(LIMIT_S)
        self._reader.join()
        self._running.__exit__(None, None, None)
        return code


def _free() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])
